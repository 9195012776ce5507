// Containers and blobs.

import { child, listed, nameOf, storage, watchList, xml } from "./api.js";
import { go, link, remember, showDetail, tabs } from "./app.js";
import { blobTabs } from "./blob.js";
import { button, bytes, confirmed, empty, guarded, h, icon, moment, visible } from "./dom.js";
import { concurrency } from "./inspect.js";
import { pagedList } from "./list.js";
import { searchField, serviceList } from "./service.js";
import { sharing } from "./share.js";
import { acceptFiles, isThere, uploadBlob, uploadButton, uploader } from "./uploads.js";

const PAGE = 200;

export function blobService(page) {
  return serviceList(page, {
    title: "Blob containers",
    singular: "container",
    load: async (marker, prefix) => {
      const answer = await xml("GET", ["blob", page.account, ""], { query: { comp: "list", maxresults: PAGE, prefix, marker } });
      const rows = listed(answer, "Container").map((each) => ({
        name: nameOf(each),
        changed: child(each, "Last-Modified"),
        lease: child(each, "LeaseState"),
        access: child(each, "PublicAccess"),
      }));
      return { rows, marker: child(answer.content, "NextMarker") };
    },
    columns: [
      { title: "Lease", show: (row) => (row.lease === "leased" ? h("span", { class: "mark bad" }, "leased") : "") },
      { title: "Public", show: (row) => row.access },
    ],
    create: async (name) => storage("PUT", ["blob", page.account, name], { query: { restype: "container" } }),
    remove: async (name) => storage("DELETE", ["blob", page.account, name], { query: { restype: "container" } }),
  });
}

export async function containerPage(page) {
  const { account, name: container, query, main, server } = page;
  const state = {
    prefix: query.prefix ?? "",
    search: query.search ?? "",
    deleted: query.deleted === "1",
    list: null,
    shown: query.show ?? null,
  };
  const here = ["blob", account, container];
  const path = (file) => state.prefix + (file.path ?? file.name);
  const uploads = uploader({
    exists: (file) => isThere([...here, path(file)]),
    put: (file, progress, signal) => uploadBlob(here, path(file), file, progress, signal),
  });
  const holder = h("div");
  const search = searchField(state.search, (text) => {
    state.search = text;
    draw();
  });
  const deleted = h("input", { type: "checkbox", checked: state.deleted });
  deleted.addEventListener("input", () => {
    state.deleted = deleted.checked;
    remember({ deleted: deleted.checked ? "1" : "" });
    draw();
  });
  const put = (files) => uploads.run(files).then(draw);
  const writes = server.readOnly
    ? []
    : [
        uploadButton(put),
        button(
          "Delete container",
          async () => {
            if (await confirmed("Delete the container?", `${container} and everything in it is deleted.`, "Delete")) {
              await storage("DELETE", here, { query: { restype: "container" } });
              go([account, "blob"]);
            }
          },
          "danger",
        ),
      ];
  main.append(
    h(
      "div",
      { class: "bar" },
      h("h1", { class: "wrap" }, container),
      search,
      h("label", { class: "check" }, deleted, "show deleted"),
      h("span", { class: "grow" }),
      button("State and sharing", () => showContainer()),
      writes,
    ),
    uploads.element,
    holder,
  );
  if (!server.readOnly) page.onleave(acceptFiles(main, put));

  async function load(marker) {
    const parameters = {
      restype: "container",
      comp: "list",
      delimiter: "/",
      maxresults: PAGE,
      prefix: state.prefix + state.search,
      marker,
      include: state.deleted ? "deleted" : "",
    };
    const answer = await xml("GET", here, { query: parameters });
    const folders = listed(answer, "BlobPrefix").map((each) => ({ folder: nameOf(each) }));
    const blobs = listed(answer, "Blob").map((each) => ({
      name: nameOf(each),
      size: Number(child(each, "Content-Length")),
      type: child(each, "Content-Type"),
      changed: child(each, "Last-Modified"),
      tier: child(each, "AccessTier"),
      lease: child(each, "LeaseState"),
      kind: child(each, "BlobType"),
      deleted: child(each, "Deleted") === "true",
    }));
    return { rows: [...folders, ...blobs], marker: child(answer.content, "NextMarker") };
  }

  const label = (row) => (row.folder ?? row.name).slice(state.prefix.length);
  function draw() {
    state.list = pagedList({
      load,
      key: (row) => row.folder ?? row.name,
      selected: state.shown,
      columns: [
        {
          title: "Name",
          className: "name",
          show: (row) =>
            row.folder !== undefined
              ? [icon("folder"), h("a", { href: link([account, "blob", container], { prefix: row.folder }) }, visible(label(row)))]
              : [icon("file"), visible(label(row))],
          sort: label,
        },
        {
          title: "Size",
          className: "num",
          show: (row) => (row.folder !== undefined ? "" : bytes(row.size)),
          sort: (row) => row.size ?? -1,
        },
        { title: "Type", className: "kind", show: (row) => row.type ?? "", sort: (row) => row.type ?? "" },
        { title: "Changed", className: "time", show: (row) => moment(row.changed), sort: (row) => Date.parse(row.changed) || 0 },
        {
          title: "State",
          show: (row) => [
            row.lease === "leased" ? h("span", { class: "mark bad" }, "leased") : "",
            " ",
            row.deleted ? h("span", { class: "mark warn" }, "deleted") : "",
            " ",
            row.tier && row.tier !== "Hot" ? h("span", { class: "mark" }, row.tier) : "",
            row.kind && row.kind !== "BlockBlob" ? h("span", { class: "mark" }, row.kind) : "",
          ],
        },
      ],
      rowClass: (row) => (row.deleted ? "deleted" : ""),
      open: (row) => (row.folder !== undefined ? go([account, "blob", container], { prefix: row.folder }) : showBlob(row.name)),
      none: empty(
        state.search ? "No blob begins with that" : "This container is empty",
        server.readOnly ? "" : "Drop files here to upload them, or paste them.",
      ),
    });
    holder.replaceChildren(state.list.element);
    return state.list.next();
  }

  function showBlob(name, tab) {
    state.shown = name;
    remember({ show: name });
    const drawn = tabs(blobTabs({ account, container, name, server, changed: draw }), tab, (chosen) => remember({ tab: chosen }));
    showDetail(name, drawn.element, { onclose: drawn.stop });
  }

  function showContainer() {
    const drawn = tabs([
      ["Concurrency", (panel) => concurrency(panel, here, server)],
      ["Share", (panel) => sharing(panel, { service: "blob", account, path: container, server })],
    ]);
    showDetail(container, drawn.element, { onclose: drawn.stop });
  }

  page.onleave(watchList("blob", account, container, () => state.list?.refresh()));
  await draw();
  if (query.show) showBlob(query.show, query.tab);
}
