// Elements, dialogs and formats. Text always becomes a text node: nothing that a user stored is ever parsed as HTML.

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && name !== "list" && typeof value !== "string") element[name] = value;
    else if (name === "value") element.value = value;
    else element.setAttribute(name === "className" ? "class" : name, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function svg(tag, props = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const $ = (selector) => document.querySelector(selector);

export function button(text, action, className = "") {
  return h("button", { type: "button", class: className, onclick: guarded(action) }, text);
}

// What an action of the user throws becomes a message.
export function guarded(action) {
  return async (event) => {
    try {
      await action(event);
    } catch (error) {
      toast(error.message, true);
    }
  };
}

export function toast(text, bad = false) {
  const shown = h("div", { class: bad ? "toast bad" : "toast", role: bad ? "alert" : null }, text);
  $("#toasts").append(shown);
  setTimeout(() => shown.remove(), bad ? 9000 : 3500);
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", {}, text);
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast("Copied.");
}

export function field(label, control) {
  return h("label", { class: "field" }, label, control);
}

// Shows a dialog. Resolves to the value of `result()` when it is confirmed, and to null when it is left.
export function ask(
  title,
  content,
  { confirm = "OK", cancel = "Cancel", danger = false, wide = false, result = () => true } = {},
) {
  return new Promise((resolve) => {
    let answer = null;
    let busy = false;
    const problem = h("div", { class: "notice bad", hidden: true, role: "alert" });
    const accept = async (event) => {
      event.preventDefault();
      if (busy) return; // a second click does nothing twice
      busy = true;
      try {
        answer = await result();
        if (answer !== undefined) dialog.close();
      } catch (error) {
        problem.textContent = error.message;
        problem.hidden = false;
      } finally {
        busy = false;
      }
    };
    const yes = h("button", { type: "submit", class: danger ? "danger" : "primary" }, confirm);
    const form = h(
      "form",
      { onsubmit: accept },
      h("h1", {}, visible(title)),
      content,
      problem,
      h("div", { class: "actions" }, cancel ? button(cancel, () => dialog.close()) : null, yes),
    );
    const dialog = h("dialog", { class: wide ? "wide" : "" }, form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
    (form.querySelector("input:not([type=hidden]), textarea, select") ?? yes).focus();
  });
}

export const confirmed = (title, text, confirm) => ask(title, h("p", { class: "wrap" }, visible(text)), { confirm, danger: true });

const ICONS = {
  folder: "M1.5 3.5h4.2l1.6 1.8h7.2v7.7h-13z",
  file: "M3.5 1.5h5.8l3.2 3.2v9.8h-9z M9 1.7v3.3h3.3",
};

// A small picture before a name; the name says the same to a screen reader.
export const icon = (kind) =>
  svg("svg", { class: `icon ${kind}`, viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[kind] }));

// Rows of name and value, with a button that adds one. `read()` gives an object.
export function pairs(entries, labels = ["name", "value"]) {
  const rows = h("div");
  const add = (name = "", value = "") => {
    const row = h(
      "div",
      { class: "pairs" },
      h("input", { value: name, "aria-label": labels[0] }),
      h("input", { value, "aria-label": labels[1] }),
      button("×", () => row.remove(), "icon"),
    );
    rows.append(row);
  };
  Object.entries(entries).forEach(([name, value]) => add(name, value));
  const element = h(
    "div",
    {},
    rows,
    button("Add", () => add()),
  );
  const read = () =>
    Object.fromEntries(
      [...rows.children].map((row) => [...row.querySelectorAll("input")].map((each) => each.value)).filter(([name]) => name),
    );
  return { element, read };
}

export function bytes(count) {
  if (count === null || count === undefined || Number.isNaN(count)) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return `${unit && count < 100 ? count.toFixed(1) : Math.round(count)} ${units[unit]}`;
}

const two = (number) => String(number).padStart(2, "0");
const timeOf = (date) => [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");

// Date and time, in the time zone of the browser.
export function moment(text) {
  const date = new Date(text);
  if (!text || Number.isNaN(date.getTime())) return "";
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${timeOf(date)}`;
}

// The time of day with milliseconds.
export function clock(text) {
  const date = new Date(text);
  return `${timeOf(date)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

export function span(seconds) {
  if (seconds < 0) seconds = 0;
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

export function facts(entries) {
  return h(
    "dl",
    { class: "facts" },
    entries
      .filter(([, value]) => value !== "" && value !== null && value !== undefined)
      .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );
}

// A name with the codes of the characters that cannot be seen or that reorder the others: "a‹U+202E›b".
const UNSEEN = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\u200b\ufeff]/gu;
export const visible = (name) =>
  name.replace(UNSEEN, (each) => `‹U+${each.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`);

// `rows` are lines or the body that holds them; `classes` are those of the columns.
export const sheet = (titles, rows, classes = []) =>
  h(
    "div",
    { class: "sheet" },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          titles.map((each, number) => h("th", { scope: "col", class: classes[number] ?? "" }, each)),
        ),
      ),
      rows instanceof Element ? rows : h("tbody", {}, rows),
    ),
  );

export function empty(title, text) {
  return h("div", { class: "empty" }, h("strong", {}, title), text);
}
