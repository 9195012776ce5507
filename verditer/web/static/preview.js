// Previews: text, JSON, CSV as a table, and images. At most the first megabyte of a text is read.

import { storage, storagePath } from "./api.js";
import { bytes, h, sheet } from "./dom.js";

const LIMIT = 1024 * 1024;
const ROWS = 500; // of a CSV file
const SNIFFED = 4096; // bytes that tell a text from other content
const IMAGES = /^image\/(png|jpeg|gif|webp|bmp|avif|svg\+xml)$/;
const IMAGE_NAMES = { png: "png", jpg: "jpeg", jpeg: "jpeg", gif: "gif", webp: "webp", bmp: "bmp", avif: "avif", svg: "svg+xml" };
const TEXTS = /^(text\/|application\/(json|xml|javascript|x-ndjson|yaml|toml|sql))|\+(json|xml)$/;
const NAMES = /\.(txt|md|json|csv|tsv|xml|ya?ml|toml|ini|log|py|js|ts|css|html?|sh|sql|cs|java|go|rs|c|h)$/i;

export async function preview(panel, place, { query = {} } = {}) {
  const name = place[place.length - 1];
  const target = `${storagePath(...place)}${Object.keys(query).length ? `?${new URLSearchParams(query)}` : ""}`;
  const facts = await storage("HEAD", place, { query });
  const size = Number(facts.header("Content-Length"));
  const stated = (facts.header("Content-Type") ?? "").split(";")[0];
  const type = imageType(stated, name) ?? stated;
  panel.append(
    h(
      "div",
      { class: "bar" },
      h("a", { class: "button", href: target, download: "" }, "Download"),
      h("span", { class: "dim" }, `${bytes(size)} · ${stated}`),
    ),
  );
  if (!size) panel.append(h("span", { class: "dim" }, "It is empty."));
  else if (IMAGES.test(type)) await image(panel, place, query, size, type);
  else if (TEXTS.test(type) || NAMES.test(name) || (GENERIC.includes(type) && (await isText(place, query, size)))) await text(panel, place, query, size, type, name);
  else panel.append(h("span", { class: "dim" }, "There is no preview for this type."));
}

// What clients store when they are told no type.
const GENERIC = ["", "application/octet-stream"];

function imageType(type, name) {
  const known = IMAGE_NAMES[/\.(\w+)$/.exec(name)?.[1].toLowerCase()];
  return GENERIC.includes(type) && known ? `image/${known}` : null;
}

async function isText(place, query, size) {
  const headers = size > SNIFFED ? { "x-ms-range": `bytes=0-${SNIFFED - 1}` } : {};
  const answer = await storage("GET", place, { query, headers, type: "blob" });
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true });
    return /^[\P{Cc}\s]*$/u.test(decoder.decode(await answer.content.arrayBuffer(), { stream: size > SNIFFED }));
  } catch {
    return false; // not UTF-8
  }
}

async function image(panel, place, query, size, type) {
  if (size > 32 * LIMIT) {
    panel.append(h("span", { class: "dim" }, "The image is too large for a preview."));
    return;
  }
  const answer = await storage("GET", place, { query, type: "blob" });
  const address = URL.createObjectURL(new Blob([answer.content], { type }));
  panel.append(
    h("img", {
      class: "preview",
      src: address,
      alt: `Preview of ${place[place.length - 1]}`,
      onload: () => URL.revokeObjectURL(address),
    }),
  );
}

async function text(panel, place, query, size, type, name) {
  const cut = size > LIMIT;
  const answer = await storage("GET", place, {
    query,
    headers: cut ? { "x-ms-range": `bytes=0-${LIMIT - 1}` } : {},
    type: "blob",
  });
  const content = await answer.content.text();
  if (cut) panel.append(h("div", { class: "notice" }, `The first ${bytes(LIMIT)} of ${bytes(size)}.`));
  if (!cut && (/[/+]json$/.test(type) || /\.json$/i.test(name))) panel.append(json(content));
  else if (/csv$/.test(type) || /\.(csv|tsv)$/i.test(name)) panel.append(csv(content, /\.tsv$/i.test(name) ? "\t" : ","));
  else panel.append(h("pre", { class: "preview" }, content));
}

function json(content) {
  try {
    JSON.parse(content);
    return h("pre", { class: "preview" }, laidOut(content));
  } catch (error) {
    return h(
      "div",
      {},
      h("div", { class: "notice warn" }, `Not valid JSON: ${error.message}`),
      h("pre", { class: "preview" }, content),
    );
  }
}

// The text of a JSON document on indented lines. It is not written anew, which would round large numbers and drop repeated names.
function laidOut(content) {
  const tokens = content.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g);
  const parts = [];
  let depth = 0;
  const line = () => parts.push("\n", "  ".repeat(depth));
  tokens.forEach((token, number) => {
    const opens = token === "{" || token === "[";
    const closes = token === "}" || token === "]";
    const empties = closes && /[{[]/.test(tokens[number - 1][0]);
    if (closes) depth -= 1;
    if (closes && !empties) line();
    parts.push(token === ":" ? ": " : token);
    if (opens) depth += 1;
    if (token === "," || (opens && !/[}\]]/.test(tokens[number + 1][0]))) line();
  });
  return parts.join("");
}

function csv(content, separator) {
  const [head, ...all] = parseCsv(content, separator);
  const rows = all.slice(0, ROWS);
  const note =
    all.length > ROWS ? h("div", { class: "notice" }, `The first ${ROWS} of ${all.length.toLocaleString("en")} rows.`) : "";
  return h(
    "div",
    {},
    note,
    sheet(
      head ?? [],
      rows.map((row) =>
        h(
          "tr",
          {},
          row.map((each) => h("td", {}, each)),
        ),
      ),
    ),
  );
}

export function parseCsv(content, separator) {
  const rows = [[""]];
  let quoted = false;
  for (let at = 0; at < content.length; at += 1) {
    const letter = content[at];
    const row = rows[rows.length - 1];
    if (quoted) {
      if (letter === '"' && content[at + 1] === '"') {
        row[row.length - 1] += '"';
        at += 1;
      } else if (letter === '"') quoted = false;
      else row[row.length - 1] += letter;
    } else if (letter === '"') quoted = true;
    else if (letter === separator) row.push("");
    else if (letter === "\n") rows.push([""]);
    else if (letter !== "\r") row[row.length - 1] += letter;
  }
  return rows.filter((row) => row.length > 1 || row[0]);
}
