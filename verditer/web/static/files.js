// Shares, directories and files.

import { asMetadata, child, listed, metadataOf, nameOf, storage, watchList, xml } from "./api.js";
import { go, link, remember, showDetail, tabs } from "./app.js";
import { button, bytes, confirmed, empty, facts, guarded, h, icon, moment, pairs, toast, visible, ask } from "./dom.js";
import { concurrency } from "./inspect.js";
import { pagedList } from "./list.js";
import { preview } from "./preview.js";
import { newName, searchField, serviceList } from "./service.js";
import { sharing } from "./share.js";
import { acceptFiles, isThere, uploadButton, uploadFile, uploader } from "./uploads.js";

export function fileService(page) {
  return serviceList(page, {
    title: "File shares",
    singular: "share",
    load: async (marker, prefix) => {
      const answer = await xml("GET", ["file", page.account, ""], { query: { comp: "list", maxresults: 200, prefix, marker } });
      const rows = listed(answer, "Share").map((each) => ({
        name: nameOf(each),
        changed: child(each, "Last-Modified"),
        quota: child(each, "Quota"),
      }));
      return { rows, marker: child(answer.content, "NextMarker") };
    },
    columns: [{ title: "Quota", className: "num", show: (row) => `${row.quota} GiB`, sort: (row) => Number(row.quota) }],
    create: (name) => storage("PUT", ["file", page.account, name], { query: { restype: "share" } }),
    remove: (name) => removeShare(page.account, name),
  });
}

const removeShare = (account, name) =>
  storage("DELETE", ["file", account, name], { query: { restype: "share" }, headers: { "x-ms-delete-snapshots": "include" } });

export async function sharePage(page) {
  const { account, name: share, query, main, server } = page;
  const state = { folder: query.prefix ?? "", search: query.search ?? "", list: null, shown: query.show ?? null }; // the folder ends with a slash, or is empty
  const path = (name) => state.folder + name;
  const at = (below) => (below ? ["file", account, share, below] : ["file", account, share]);
  const target = (file) => path(file.path ?? file.name);
  const exists = (file) => isThere(at(target(file)));
  const uploads = uploader({ exists, put: (file, progress, signal) => uploadFile(at, target(file), file, progress, signal) });
  const holder = h("div");
  const search = searchField(state.search, (text) => {
    state.search = text;
    draw();
  });
  const put = (files) => uploads.run(files).then(draw);
  const writes = server.readOnly
    ? []
    : [
        uploadButton(put),
        button("New directory", async () => {
          if (
            await newName("New directory", "Name", "", (name) =>
              storage("PUT", at(path(name)), { query: { restype: "directory" } }),
            )
          )
            await draw();
        }),
        button("Take snapshot", async () => {
          await storage("PUT", at(""), { query: { restype: "share", comp: "snapshot" } });
          toast("Snapshot taken.");
        }),
        button(
          "Delete share",
          async () => {
            if (await confirmed("Delete the share?", `${share}, its snapshots and everything in it is deleted.`, "Delete")) {
              await removeShare(account, share);
              go([account, "file"]);
            }
          },
          "danger",
        ),
      ];
  main.append(
    h(
      "div",
      { class: "bar" },
      h("h1", { class: "wrap" }, share),
      search,
      h("span", { class: "grow" }),
      button("State and sharing", showShare),
      writes,
    ),
    uploads.element,
    holder,
  );
  if (!server.readOnly) page.onleave(acceptFiles(main, put));

  async function load(marker) {
    const answer = await xml("GET", at(state.folder.replace(/\/$/, "")), {
      query: {
        restype: "directory",
        comp: "list",
        maxresults: 200,
        prefix: state.search,
        marker,
        include: "Timestamps,Etag,Attributes",
      },
      headers: { "x-ms-file-extended-info": "true" },
    });
    const rows = [...(answer.content.getElementsByTagName("Entries")[0]?.children ?? [])].map((each) => ({
      name: nameOf(each),
      folder: each.tagName === "Directory",
      size: Number(child(each, "Content-Length")),
      changed: child(each, "LastWriteTime") || child(each, "Last-Modified"),
      attributes: child(each, "Attributes"),
    }));
    return { rows, marker: child(answer.content, "NextMarker") };
  }

  function draw() {
    state.list = pagedList({
      load,
      selected: state.shown,
      columns: [
        {
          title: "Name",
          className: "name",
          show: (row) =>
            row.folder
              ? [
                  icon("folder"),
                  h("a", { href: link([account, "file", share], { prefix: `${path(row.name)}/` }) }, visible(`${row.name}/`)),
                ]
              : [icon("file"), visible(row.name)],
          sort: (row) => row.name,
        },
        {
          title: "Size",
          className: "num",
          show: (row) => (row.folder ? "" : bytes(row.size)),
          sort: (row) => (row.folder ? -1 : row.size),
        },
        { title: "Written", className: "time", show: (row) => moment(row.changed), sort: (row) => Date.parse(row.changed) || 0 },
        { title: "Attributes", show: (row) => row.attributes.replace(/\b(None|Archive|Directory)\b\s*\|?\s*/g, "") },
        {
          title: "",
          className: "right",
          show: (row) =>
            row.folder
              ? button(
                  "Details",
                  (event) => {
                    event.stopPropagation();
                    showEntry(row.name, true);
                  },
                  "link",
                )
              : "",
        },
      ],
      open: (row) => (row.folder ? go([account, "file", share], { prefix: `${path(row.name)}/` }) : showEntry(row.name, false)),
      none: empty(
        state.search ? "No entry begins with that" : "This directory is empty",
        server.readOnly ? "" : "Drop files here to upload them, or paste them.",
      ),
    });
    holder.replaceChildren(state.list.element);
    return state.list.next();
  }

  function showEntry(name, folder, tab) {
    state.shown = name;
    remember({ show: name, kind: folder ? "directory" : "" });
    const place = at(path(name));
    const drawn = tabs(
      [
        ...(folder ? [] : [["Preview", (panel) => preview(panel, place)]]),
        ["Properties", (panel) => properties(panel, place, name, folder)],
        ["Concurrency", (panel) => concurrency(panel, place, server)],
        ...(folder
          ? []
          : [["Share", (panel) => sharing(panel, { service: "file", account, path: `${share}/${path(name)}`, server })]]),
      ],
      tab,
      (chosen) => remember({ tab: chosen }),
    );
    showDetail(name, drawn.element, { onclose: drawn.stop });
  }

  function showShare() {
    const drawn = tabs([
      ["Concurrency", (panel) => concurrency(panel, at(""), server)],
      ["Share", (panel) => sharing(panel, { service: "file", account, path: share, server })],
    ]);
    showDetail(share, drawn.element, { onclose: drawn.stop });
  }

  async function properties(panel, place, name, folder) {
    const kind = folder ? { restype: "directory" } : {};
    const found = await storage("HEAD", place, { query: kind });
    const header = (each) => found.header(each) ?? "";
    const metadata = metadataOf(found);
    panel.append(
      h(
        "section",
        { class: "part" },
        facts([
          [
            "Size",
            folder
              ? ""
              : `${bytes(Number(header("Content-Length")))} (${Number(header("Content-Length")).toLocaleString("en")} bytes)`,
          ],
          ["Type", folder ? "" : header("Content-Type")],
          ["ETag", h("span", { class: "mono" }, header("ETag"))],
          ["Attributes", header("x-ms-file-attributes")],
          ["Created", moment(header("x-ms-file-creation-time"))],
          ["Written", moment(header("x-ms-file-last-write-time"))],
          ["Changed", moment(header("x-ms-file-change-time"))],
          ["File id", header("x-ms-file-id")],
          ["Permission key", h("span", { class: "mono" }, header("x-ms-file-permission-key"))],
          ["Lease", header("x-ms-lease-state")],
        ]),
      ),
      h(
        "section",
        { class: "part" },
        h("h2", {}, "Metadata"),
        Object.keys(metadata).length ? facts(Object.entries(metadata)) : h("span", { class: "dim" }, "none"),
      ),
    );
    if (server.readOnly) return;
    const edit = async () => {
      const edited = pairs(metadata);
      if (
        await ask("Metadata", edited.element, {
          confirm: "Save",
          result: () =>
            storage("PUT", place, {
              query: { ...kind, comp: "metadata" },
              headers: asMetadata(edited.read()),
            }),
        })
      ) {
        toast("Metadata saved.");
        showEntry(name, folder, "Properties");
      }
    };
    const rename = async () => {
      const source = `${server.endpoints.file}/${account}/${share}/${path(name).split("/").map(encodeURIComponent).join("/")}`;
      const to = await newName(
        "Rename",
        "New path in this share",
        path(name),
        (text) =>
          storage("PUT", at(text), { query: { ...kind, comp: "rename" }, headers: { "x-ms-file-rename-source": source } }),
        "Rename",
      );
      if (to) {
        toast("Renamed.");
        await draw();
        const cut = to.lastIndexOf("/") + 1;
        if (to.slice(0, cut) === state.folder) showEntry(to.slice(cut), folder, "Properties");
        else go([account, "file", share], { prefix: to.slice(0, cut) });
      }
    };
    const remove = async () => {
      if (await confirmed(`Delete ${name}?`, folder ? "The directory has to be empty." : "The file is deleted.", "Delete")) {
        await storage("DELETE", place, { query: kind });
        toast("Deleted.");
        panel.replaceChildren(h("span", { class: "dim" }, "Deleted."));
        await draw();
      }
    };
    panel.append(
      h("div", { class: "bar" }, button("Edit metadata", edit), button("Rename…", rename), button("Delete", remove, "danger")),
    );
  }

  page.onleave(watchList("file", account, share, () => state.list?.refresh()));
  await draw();
  if (query.show) showEntry(query.show, query.kind === "directory", query.tab);
}
