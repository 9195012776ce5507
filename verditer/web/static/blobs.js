// Containers and blobs.

import { child, listed, nameOf, storage, storagePath, watchList, xml } from "./api.js";
import { go, link, remember, showDetail, tabs } from "./app.js";
import { ask, button, bytes, confirmed, empty, facts, field, guarded, h, icon, moment, pairs, toast } from "./dom.js";
import { concurrency } from "./inspect.js";
import { pagedList } from "./list.js";
import { preview } from "./preview.js";
import { newName, searchField, serviceList } from "./service.js";
import { sharing } from "./share.js";
import { acceptFiles, chooseFiles, uploader } from "./uploads.js";

const PAGE = 200;
const BLOCK = 8 * 1024 * 1024;

export function blobService(page) {
  return serviceList(page, {
    title: "Blob containers",
    singular: "container",
    load: async (marker, prefix) => {
      const answer = await xml("GET", ["blob", page.account, ""], { query: { comp: "list", maxresults: PAGE, prefix, marker } });
      const rows = listed(answer, "Container").map((each) => ({ name: nameOf(each), changed: child(each, "Last-Modified"), lease: child(each, "LeaseState"), access: child(each, "PublicAccess") }));
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
  const state = { prefix: query.prefix ?? "", search: query.search ?? "", deleted: query.deleted === "1", list: null, shown: query.show ?? null };
  const here = ["blob", account, container];
  const path = (file) => state.prefix + (file.path ?? file.name);
  const uploads = uploader({ exists: (file) => isThere([...here, path(file)]), put: (file, progress, signal) => uploadBlob(here, path(file), file, progress, signal) });
  const holder = h("div");
  const search = searchField(state.search, (text) => { state.search = text; draw(); });
  const deleted = h("input", { type: "checkbox", checked: state.deleted });
  deleted.addEventListener("input", () => { state.deleted = deleted.checked; remember({ deleted: deleted.checked ? "1" : "" }); draw(); });
  const put = (files) => uploads.run(files).then(draw);
  const writes = server.readOnly ? [] : [
    h("button", { type: "button", class: "primary", "data-key": "u", onclick: guarded(async () => put(await chooseFiles())) }, "Upload"),
    button("Delete container", async () => { if (await confirmed("Delete the container?", `${container} and everything in it is deleted.`, "Delete")) { await storage("DELETE", here, { query: { restype: "container" } }); go([account, "blob"]); } }, "danger"),
  ];
  main.append(h("div", { class: "bar" }, h("h1", { class: "wrap" }, container), search, h("label", { class: "check" }, deleted, "show deleted"), h("span", { class: "grow" }),
    button("State and sharing", () => showContainer()), writes), uploads.element, holder);
  if (!server.readOnly) page.onleave(acceptFiles(main, put));

  async function load(marker) {
    const parameters = { restype: "container", comp: "list", delimiter: "/", maxresults: PAGE, prefix: state.prefix + state.search, marker, include: state.deleted ? "deleted" : "" };
    const answer = await xml("GET", here, { query: parameters });
    const folders = listed(answer, "BlobPrefix").map((each) => ({ folder: nameOf(each) }));
    const blobs = listed(answer, "Blob").map((each) => ({
      name: nameOf(each), size: Number(child(each, "Content-Length")), type: child(each, "Content-Type"), changed: child(each, "Last-Modified"),
      tier: child(each, "AccessTier"), lease: child(each, "LeaseState"), kind: child(each, "BlobType"), deleted: child(each, "Deleted") === "true",
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
        { title: "Name", className: "name", show: (row) => (row.folder !== undefined ? [icon("folder"), h("a", { href: link([account, "blob", container], { prefix: row.folder }) }, label(row))] : [icon("file"), label(row)]), sort: label },
        { title: "Size", className: "num", show: (row) => (row.folder !== undefined ? "" : bytes(row.size)), sort: (row) => row.size ?? -1 },
        { title: "Type", className: "kind", show: (row) => row.type ?? "", sort: (row) => row.type ?? "" },
        { title: "Changed", className: "time", show: (row) => moment(row.changed), sort: (row) => Date.parse(row.changed) || 0 },
        { title: "State", show: (row) => [row.lease === "leased" ? h("span", { class: "mark bad" }, "leased") : "", " ", row.deleted ? h("span", { class: "mark warn" }, "deleted") : "", " ", row.tier && row.tier !== "Hot" ? h("span", { class: "mark" }, row.tier) : "", row.kind && row.kind !== "BlockBlob" ? h("span", { class: "mark" }, row.kind) : ""] },
      ],
      rowClass: (row) => (row.deleted ? "deleted" : ""),
      open: (row) => (row.folder !== undefined ? go([account, "blob", container], { prefix: row.folder }) : showBlob(row.name)),
      none: empty(state.search ? "No blob begins with that" : "This container is empty", server.readOnly ? "" : "Drop files here to upload them, or paste them."),
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
    const drawn = tabs([["Concurrency", (panel) => concurrency(panel, here, server)], ["Share", (panel) => sharing(panel, { service: "blob", account, path: container, server })]]);
    showDetail(container, drawn.element, { onclose: drawn.stop });
  }

  page.onleave(watchList("blob", account, container, () => state.list?.refresh()));
  await draw();
  if (query.show) showBlob(query.show, query.tab);
}

async function isThere(place) {
  try {
    await storage("HEAD", place);
    return true;
  } catch (error) {
    if (error.status !== 404) throw error;
    return false;
  }
}

async function uploadBlob(here, name, file, progress, signal) {
  const place = [...here, name];
  const type = file.type || "application/octet-stream";
  if (file.size <= BLOCK) {
    return storage("PUT", place, { headers: { "x-ms-blob-type": "BlockBlob", "Content-Type": type }, body: file, progress, signal });
  }
  const ids = [];
  for (let start = 0; start < file.size; start += BLOCK) {
    const id = btoa(String(ids.length).padStart(8, "0"));
    await storage("PUT", place, { query: { comp: "block", blockid: id }, body: file.slice(start, start + BLOCK), progress: (sent) => progress(start + sent), signal });
    ids.push(id);
  }
  const list = `<?xml version="1.0" encoding="utf-8"?><BlockList>${ids.map((id) => `<Latest>${id}</Latest>`).join("")}</BlockList>`;
  return storage("PUT", place, { query: { comp: "blocklist" }, headers: { "x-ms-blob-content-type": type }, body: list, signal });
}

function blobTabs({ account, container, name, server, changed }) {
  const place = ["blob", account, container, name];
  return [
    ["Preview", (panel) => preview(panel, place, { download: true })],
    ["Properties", (panel) => properties(panel, place, server, changed)],
    ["Concurrency", (panel) => concurrency(panel, place, { readOnly: server.readOnly, history: (state) => pastActions(state, place, server, changed) })],
    ["Share", (panel) => sharing(panel, { service: "blob", account, path: `${container}/${name}`, server })],
  ];
}

function pastActions(state, place, server, changed) {
  const query = state.kind === "snapshot" ? { snapshot: state.id } : state.kind === "version" ? { versionid: state.id } : null;
  if (!query) return server.readOnly ? [] : [button("Undelete", async () => { await storage("PUT", place, { query: { comp: "undelete" } }); toast("Restored."); changed(); })];
  const source = `${server.endpoints.blob}/${place[1]}/${place[2]}/${encodeURIComponent(place[3])}?${new URLSearchParams(query)}`;
  const download = h("a", { class: "button", href: `${storagePath(...place)}?${new URLSearchParams(query)}`, download: "" }, "Download");
  const restore = button("Make current", async () => { await storage("PUT", place, { headers: { "x-ms-copy-source": source } }); toast("Made current."); changed(); });
  const remove = button("Delete", async () => { await storage("DELETE", place, { query }); toast("Deleted."); }, "danger");
  return server.readOnly ? [download] : [download, restore, remove];
}

async function properties(panel, place, server, changed) {
  let found;
  try {
    found = await storage("HEAD", place);
  } catch (error) {
    if (error.status !== 404) throw error;
    const undelete = async () => { await storage("PUT", place, { query: { comp: "undelete" } }); toast("Restored."); changed(); panel.replaceChildren(); await properties(panel, place, server, changed); };
    panel.append(h("div", { class: "notice warn" }, "The blob was deleted."), button("Undelete", undelete, "primary"));
    return;
  }
  const header = (name) => found.header(name) ?? "";
  const etag = header("ETag");
  const metadata = Object.fromEntries(found.request.getAllResponseHeaders().trim().split("\r\n").map((line) => line.split(": ")).filter(([name]) => name.startsWith("x-ms-meta-")).map(([name, ...value]) => [name.slice(10), value.join(": ")]));
  const again = async (text) => { toast(text); changed(); panel.replaceChildren(); await properties(panel, place, server, changed); };
  const settable = { "x-ms-blob-content-type": "Content-Type", "x-ms-blob-cache-control": "Cache-Control", "x-ms-blob-content-encoding": "Content-Encoding", "x-ms-blob-content-language": "Content-Language", "x-ms-blob-content-disposition": "Content-Disposition" };
  panel.append(h("section", { class: "part" }, facts([
    ["Size", `${bytes(Number(header("Content-Length")))} (${Number(header("Content-Length")).toLocaleString("en")} bytes)`], ["Blob type", header("x-ms-blob-type")], ["ETag", h("span", { class: "mono" }, etag)], ["Changed", moment(header("Last-Modified"))], ["Created", moment(header("x-ms-creation-time"))],
    ...Object.values(settable).map((name) => [name, header(name)]), ["Content-MD5", header("Content-MD5")], ["Access tier", header("x-ms-access-tier")], ["Lease", header("x-ms-lease-state")], ["Version", header("x-ms-version-id")], ["Copied from", header("x-ms-copy-source")], ["Copy", header("x-ms-copy-status")],
  ])));
  const tagList = header("x-ms-tag-count") ? await readTags(place) : {};
  const listOf = (title, entries, edit) => h("section", { class: "part" }, h("h2", {}, title), Object.keys(entries).length ? facts(Object.entries(entries)) : h("span", { class: "dim" }, "none"), " ", server.readOnly ? "" : button("Edit", edit));
  panel.append(
    listOf("Metadata", metadata, async () => {
      const edited = pairs(metadata);
      if (await ask("Metadata", edited.element, { confirm: "Save", result: () => storage("PUT", place, { query: { comp: "metadata" }, headers: { "If-Match": etag, ...Object.fromEntries(Object.entries(edited.read()).map(([key, value]) => [`x-ms-meta-${key}`, value])) } }) })) await again("Metadata saved.");
    }),
    listOf("Tags", tagList, async () => {
      const edited = pairs(tagList);
      if (await ask("Tags", edited.element, { confirm: "Save", result: () => storage("PUT", place, { query: { comp: "tags" }, body: tagsXml(edited.read()) }) })) await again("Tags saved.");
    }));
  if (server.readOnly) return;
  const tier = h("select", { "aria-label": "Access tier" }, ["Hot", "Cool", "Cold", "Archive"].map((each) => h("option", { value: each, selected: each === header("x-ms-access-tier") }, each)));
  panel.append(h("div", { class: "bar" },
    button("Edit properties", async () => {
      const inputs = Object.fromEntries(Object.entries(settable).map(([key, name]) => [key, h("input", { value: header(name) })]));
      if (await ask("Properties", Object.entries(inputs).map(([key, input]) => field(settable[key], input)), { confirm: "Save", result: () => storage("PUT", place, { query: { comp: "properties" }, headers: { "If-Match": etag, "x-ms-blob-content-md5": header("Content-MD5"), ...Object.fromEntries(Object.entries(inputs).map(([key, input]) => [key, input.value])) } }) })) await again("Properties saved.");
    }),
    button("Take snapshot", async () => { await storage("PUT", place, { query: { comp: "snapshot" } }); toast("Snapshot taken."); }),
    button("Copy to…", async () => {
      const target = await newName("Copy blob", "Container and name of the copy", `${place[2]}/${place[3]}`, async (text) => {
        const [container, ...rest] = text.split("/");
        const source = `${server.endpoints.blob}/${place[1]}/${place[2]}/${encodeURIComponent(place[3])}`;
        return storage("PUT", ["blob", place[1], container, rest.join("/")], { headers: { "x-ms-copy-source": source, "If-None-Match": "*" } });
      }, "Copy");
      if (target) await again("Copied.");
    }),
    tier, button("Set tier", async () => { await storage("PUT", place, { query: { comp: "tier" }, headers: { "x-ms-access-tier": tier.value } }); await again("Tier set."); }),
    button("Delete", async () => {
      const what = h("select", {}, h("option", { value: "" }, "the blob only, if it has no snapshots"), h("option", { value: "include" }, "the blob and its snapshots"), h("option", { value: "only" }, "the snapshots only"));
      if (await ask(`Delete ${place[3]}?`, field("Delete", what), { confirm: "Delete", danger: true, result: () => storage("DELETE", place, { headers: { "If-Match": etag, "x-ms-delete-snapshots": what.value } }) })) { toast("Deleted."); changed(); panel.replaceChildren(h("span", { class: "dim" }, "Deleted.")); }
    }, "danger")));
}

async function readTags(place) {
  const answer = await xml("GET", place, { query: { comp: "tags" } });
  return Object.fromEntries(listed(answer, "Tag").map((each) => [child(each, "Key"), child(each, "Value")]));
}

function tagsXml(tags) {
  const root = document.implementation.createDocument(null, "Tags");
  const set = root.documentElement.appendChild(root.createElement("TagSet"));
  for (const [key, value] of Object.entries(tags)) {
    const tag = set.appendChild(root.createElement("Tag"));
    tag.appendChild(root.createElement("Key")).textContent = key;
    tag.appendChild(root.createElement("Value")).textContent = value;
  }
  return new XMLSerializer().serializeToString(root);
}
