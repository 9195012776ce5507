// One blob: its preview, properties, history and addresses, and what can be done with it.

import { asMetadata, child, listed, metadataOf, storage, storagePath, xml } from "./api.js";
import { ask, button, bytes, facts, field, h, moment, pairs, toast } from "./dom.js";
import { concurrency } from "./inspect.js";
import { preview } from "./preview.js";
import { newName } from "./service.js";
import { sharing } from "./share.js";

const SETTABLE = {
  "x-ms-blob-content-type": "Content-Type",
  "x-ms-blob-cache-control": "Cache-Control",
  "x-ms-blob-content-encoding": "Content-Encoding",
  "x-ms-blob-content-language": "Content-Language",
  "x-ms-blob-content-disposition": "Content-Disposition",
};
const TIERS = ["Hot", "Cool", "Cold", "Archive"];

// changed() is called when the list of blobs should be read again.
export function blobTabs({ account, container, name, server, changed }) {
  const place = ["blob", account, container, name];
  return [
    ["Preview", (panel) => preview(panel, place)],
    ["Properties", (panel) => properties(panel, place, server, changed)],
    [
      "Concurrency",
      (panel) =>
        concurrency(panel, place, { readOnly: server.readOnly, history: (state) => pastActions(state, place, server, changed) }),
    ],
    ["Share", (panel) => sharing(panel, { service: "blob", account, path: `${container}/${name}`, server })],
  ];
}

function pastActions(state, place, server, changed) {
  const query = state.kind === "snapshot" ? { snapshot: state.id } : state.kind === "version" ? { versionid: state.id } : null;
  if (!query)
    return server.readOnly
      ? []
      : [
          button("Undelete", async () => {
            await storage("PUT", place, { query: { comp: "undelete" } });
            toast("Restored.");
            changed();
          }),
        ];
  const source = `${addressOf(place, server)}?${new URLSearchParams(query)}`;
  const download = h(
    "a",
    { class: "button", href: `${storagePath(...place)}?${new URLSearchParams(query)}`, download: "" },
    "Download",
  );
  const restore = button("Make current", async () => {
    await storage("PUT", place, { headers: { "x-ms-copy-source": source } });
    toast("Made current.");
    changed();
  });
  const remove = button(
    "Delete",
    async () => {
      await storage("DELETE", place, { query });
      toast("Deleted.");
    },
    "danger",
  );
  return server.readOnly ? [download] : [download, restore, remove];
}

const addressOf = (place, server) => `${server.endpoints.blob}/${place[1]}/${place[2]}/${encodeURIComponent(place[3])}`;

async function properties(panel, place, server, changed) {
  const again = async (text) => {
    toast(text);
    changed();
    panel.replaceChildren();
    await properties(panel, place, server, changed);
  };
  let found;
  try {
    found = await storage("HEAD", place);
  } catch (error) {
    if (error.status !== 404) throw error;
    const undelete = async () => {
      await storage("PUT", place, { query: { comp: "undelete" } });
      await again("Restored.");
    };
    const offer = server.readOnly ? "" : button("Undelete", undelete, "primary");
    panel.append(h("div", { class: "notice warn" }, "The blob was deleted."), offer);
    return;
  }
  const blob = { place, header: (name) => found.header(name) ?? "", server, again };
  const tags = blob.header("x-ms-tag-count") ? await readTags(place) : {};
  panel.append(overview(blob), metadataPart(blob, metadataOf(found)), tagsPart(blob, tags));
  if (server.readOnly) return;
  const gone = () => {
    toast("Deleted.");
    changed();
    panel.replaceChildren(h("span", { class: "dim" }, "Deleted."));
  };
  panel.append(actions(blob, gone));
}

function overview({ header }) {
  const size = Number(header("Content-Length"));
  const entries = [
    ["Size", `${bytes(size)} (${size.toLocaleString("en")} bytes)`],
    ["Blob type", header("x-ms-blob-type")],
    ["ETag", h("span", { class: "mono" }, header("ETag"))],
    ["Changed", moment(header("Last-Modified"))],
    ["Created", moment(header("x-ms-creation-time"))],
    ...Object.values(SETTABLE).map((name) => [name, header(name)]),
    ["Content-MD5", header("Content-MD5")],
    ["Access tier", header("x-ms-access-tier")],
    ["Lease", header("x-ms-lease-state")],
    ["Version", header("x-ms-version-id")],
    ["Copied from", header("x-ms-copy-source")],
    ["Copy", header("x-ms-copy-status")],
  ];
  return h("section", { class: "part" }, facts(entries));
}

// Metadata or tags, with a button that edits them: `save(edited)` stores them.
function part(title, entries, { server, again }, save) {
  const edit = async () => {
    const edited = pairs(entries);
    const saved = await ask(title, edited.element, { confirm: "Save", result: () => save(edited.read()) });
    if (saved) await again(`${title} saved.`);
  };
  const shown = Object.keys(entries).length ? facts(Object.entries(entries)) : h("span", { class: "dim" }, "none");
  return h("section", { class: "part" }, h("h2", {}, title, server.readOnly ? "" : button("Edit", edit, "link")), shown);
}

const metadataPart = (blob, metadata) =>
  part("Metadata", metadata, blob, (edited) =>
    storage("PUT", blob.place, {
      query: { comp: "metadata" },
      headers: { "If-Match": blob.header("ETag"), ...asMetadata(edited) },
    }),
  );

const tagsPart = (blob, tags) =>
  part("Tags", tags, blob, (edited) => storage("PUT", blob.place, { query: { comp: "tags" }, body: tagsXml(edited) }));

function actions(blob, gone) {
  const { place, header, again } = blob;
  const options = TIERS.map((each) => h("option", { value: each, selected: each === header("x-ms-access-tier") }, each));
  const tier = h("select", { "aria-label": "Access tier" }, options);
  const setTier = async () => {
    await storage("PUT", place, { query: { comp: "tier" }, headers: { "x-ms-access-tier": tier.value } });
    await again("Tier set.");
  };
  const snapshot = async () => {
    await storage("PUT", place, { query: { comp: "snapshot" } });
    toast("Snapshot taken.");
  };
  return h(
    "div",
    { class: "bar" },
    button("Edit properties", () => editProperties(blob)),
    button("Take snapshot", snapshot),
    button("Copy to…", () => copyTo(blob)),
    h("span", { class: "together" }, tier, button("Set tier", setTier)),
    button("Delete", () => remove(blob, gone), "danger"),
  );
}

async function editProperties({ place, header, again }) {
  const inputs = Object.entries(SETTABLE).map(([key, name]) => [key, h("input", { value: header(name) })]);
  const save = () =>
    storage("PUT", place, {
      query: { comp: "properties" },
      headers: {
        "If-Match": header("ETag"),
        "x-ms-blob-content-md5": header("Content-MD5"),
        ...Object.fromEntries(inputs.map(([key, input]) => [key, input.value])),
      },
    });
  const fields = inputs.map(([key, input]) => field(SETTABLE[key], input));
  if (await ask("Properties", fields, { confirm: "Save", result: save })) await again("Properties saved.");
}

async function copyTo({ place, server, again }) {
  const copy = (text) => {
    const [container, ...rest] = text.split("/");
    return storage("PUT", ["blob", place[1], container, rest.join("/")], {
      headers: { "x-ms-copy-source": addressOf(place, server), "If-None-Match": "*" },
    });
  };
  const name = `${place[2]}/${place[3]}`;
  if (await newName("Copy blob", "Container and name of the copy", name, copy, "Copy")) await again("Copied.");
}

async function remove({ place, header }, gone) {
  const what = h(
    "select",
    {},
    h("option", { value: "" }, "the blob only, if it has no snapshots"),
    h("option", { value: "include" }, "the blob and its snapshots"),
    h("option", { value: "only" }, "the snapshots only"),
  );
  const headers = () => ({ "If-Match": header("ETag"), "x-ms-delete-snapshots": what.value });
  const result = () => storage("DELETE", place, { headers: headers() });
  if (await ask(`Delete ${place[3]}?`, field("Delete", what), { confirm: "Delete", danger: true, result })) gone();
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
