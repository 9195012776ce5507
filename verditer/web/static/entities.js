// Entities: how their values are shown, and the form that edits them with the types of their properties.

import { button, field, h } from "./dom.js";

const TYPES = ["String", "Int32", "Int64", "Double", "Boolean", "DateTime", "Guid", "Binary"];
const KEYS = ["PartitionKey", "RowKey", "Timestamp"];

export const own = (entity) => Object.keys(entity).filter((name) => !name.includes("odata.") && !KEYS.includes(name));
const LISTED = 200; // characters of a value in the list; the details show all
export const cut = (text) => (text.length > LISTED ? `${text.slice(0, LISTED)}…` : text);
export const shown = (value) => (value === undefined || value === null ? "" : String(value));

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
    const row = h(
      "div",
      { class: "pairs typed" },
      h("input", { value: name, placeholder: "property", "aria-label": "Property" }),
      h(
        "select",
        { "aria-label": `Type of ${name}` },
        TYPES.map((each) => h("option", { value: each, selected: each === type }, each)),
      ),
      h("input", { value: shown(value), "aria-label": `Value of ${name}` }),
      button("×", () => row.remove(), "icon"),
    );
    rows.append(row);
  };
  if (entity) own(entity).forEach((name) => add(name, typeOf(entity, name), entity[name]));
  else add();
  const read = () => {
    const result = { PartitionKey: keys.PartitionKey.value, RowKey: keys.RowKey.value };
    for (const row of rows.children) {
      const [name, type, value] = [...row.querySelectorAll("input, select")].map((each) => each.value);
      if (name) Object.assign(result, property(name, type, value));
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

function property(name, type, value) {
  if (type === "Boolean") return { [name]: value.toLowerCase() === "true" };
  if (type === "Int32") {
    if (!/^-?\d+$/.test(value)) throw new Error(`${name}: ${value || "nothing"} is not a whole number.`);
    return { [name]: Number(value) };
  }
  if (type === "String") return { [name]: value };
  return { [`${name}@odata.type`]: `Edm.${type}`, [name]: value };
}
