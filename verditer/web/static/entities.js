// Entities: how their values are shown, and the form that edits them with the types of their properties.

import { button, field, h } from "./dom.js";

const TYPES = ["String", "Int32", "Int64", "Double", "Boolean", "DateTime", "Guid", "Binary"];
const KEYS = ["PartitionKey", "RowKey", "Timestamp"];

export const own = (entity) => Object.keys(entity).filter((name) => !name.includes("odata.") && !KEYS.includes(name));
const LISTED = 200; // characters of a value in the list; the details show all
const LINE = 40; // characters of a value in the form
export const cut = (text) => (text.length > LISTED ? `${text.slice(0, LISTED)}…` : text);
export const shown = (value) => (value === undefined || value === null ? "" : String(value));

// A Double is recognised by its form only: 1.0 is one, and 1 is an Int32. JSON.parse makes the same number of both, so the type is
// written beside each Double. The second alternative skips strings, whose text may look like a member.
const STRING = String.raw`"[^"\\]*(?:\\.[^"\\]*)*"`;
const NUMBERS = new RegExp(String.raw`(${STRING})\s*:\s*(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|${STRING}`, "g");
export const parseEntities = (text) =>
  JSON.parse(
    text.replace(NUMBERS, (all, name, number) =>
      /[.e]/i.test(number ?? "") ? `${name.slice(0, -1)}@odata.type":"Edm.Double",${all}` : all,
    ),
  );

export const keyOf = (entity) => JSON.stringify([entity.PartitionKey, entity.RowKey]);

export function valuesOf(entity) {
  const row = (name, value, type = typeOf(entity, name)) =>
    h("tr", {}, h("td", { class: "dim" }, name), h("td", { class: "wrap mono" }, shown(value)), h("td", { class: "dim" }, type));
  return h(
    "div",
    { class: "sheet part" },
    h(
      "table",
      {},
      h(
        "tbody",
        {},
        row("PartitionKey", entity.PartitionKey),
        row("RowKey", entity.RowKey),
        own(entity).map((name) => row(name, entity[name])),
        row("Timestamp", entity.Timestamp),
        row("ETag", entity["odata.etag"], ""),
      ),
    ),
  );
}

function typeOf(entity, name) {
  const stated = entity[`${name}@odata.type`]?.replace("Edm.", "");
  if (stated) return stated;
  const value = entity[name];
  return typeof value === "boolean"
    ? "Boolean"
    : typeof value === "number"
      ? Number.isInteger(value)
        ? "Int32"
        : "Double"
      : "String";
}

export function entityForm(entity) {
  const keys = Object.fromEntries(
    ["PartitionKey", "RowKey"].map((name) => [name, h("input", { value: entity?.[name] ?? "", disabled: entity !== null })]),
  );
  const rows = h("div");
  const add = (name = "", type = "String", value = "") => {
    const text = shown(value);
    const control = valueControl(text, `Value of ${name}`);
    const row = h(
      "div",
      { class: "pairs typed" },
      h("input", { value: name, placeholder: "property", "aria-label": "Property" }),
      h(
        "select",
        { "aria-label": `Type of ${name}` },
        TYPES.map((each) => h("option", { value: each, selected: each === type }, each)),
      ),
      control,
      button("×", () => row.remove(), "icon"),
    );
    // A control drops or changes line breaks, so a value that was not edited is taken from the entity.
    const initial = control.value;
    row.readValue = () => (control.value === initial ? text : text.includes("\r\n") ? crlf(control.value) : control.value);
    rows.append(row);
  };
  if (entity) own(entity).forEach((name) => add(name, typeOf(entity, name), entity[name]));
  else add();
  const read = () => {
    const result = { PartitionKey: keys.PartitionKey.value, RowKey: keys.RowKey.value };
    for (const row of rows.children) {
      const [name, type] = [...row.querySelectorAll("input, select")].map((each) => each.value);
      if (name) Object.assign(result, property(name, type, row.readValue()));
    }
    return result;
  };
  return {
    element: h(
      "div",
      {},
      Object.entries(keys).map(([name, input]) => field(name, input)),
      h("h2", {}, "Properties"),
      rows,
      button("Add property", () => add()),
    ),
    read,
  };
}

const crlf = (text) => text.replaceAll("\n", "\r\n");

// One line, or several where the text needs them.
function valueControl(text, label) {
  const lines = text.split("\n").length + Math.floor(text.length / LINE);
  if (lines === 1) return h("input", { value: text, "aria-label": label });
  return h("textarea", { rows: Math.min(lines, 8), value: text, "aria-label": label });
}

function property(name, type, value) {
  if (type === "Boolean") {
    if (!/^(true|false)$/i.test(value)) throw new Error(`${name}: a Boolean is true or false.`);
    return { [name]: value.toLowerCase() === "true" };
  }
  if (type === "Int32") {
    if (!/^-?\d+$/.test(value)) throw new Error(`${name}: ${value || "nothing"} is not a whole number.`);
    return { [name]: Number(value) };
  }
  if (type === "String") return { [name]: value };
  return { [`${name}@odata.type`]: `Edm.${type}`, [name]: value };
}
