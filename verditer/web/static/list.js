// A table of rows that is loaded page by page, sorted by a click on a column, used with the keyboard, and brought up to date.

import { button, empty, guarded, h } from "./dom.js";

const PAUSE = 1000; // milliseconds between two readings of a list that changes all the time

// columns: { title, show(row), sort(row)?, className? }. load(marker) → { rows, marker }. open(row) is called for the selected one.
// key(row) identifies a row; `selected` is the key of the row that is marked from the start.
export function pagedList({ columns, load, open, none, key = (row) => row.name, selected = null, rowClass = () => "" }) {
  const state = {
    rows: [],
    marker: "",
    pages: 0,
    done: false,
    loading: false,
    failed: false,
    sort: null,
    descending: false,
    selected,
    due: null,
  };
  const body = h("tbody");
  const note = h("span", { role: "status" });
  const more = button("Load more", () => next());
  const foot = h("div", { class: "more" }, note, more);
  const headers = columns.map((column) =>
    h(
      "th",
      { class: column.className ?? "", scope: "col" },
      column.sort ? button(column.title, () => sortBy(column)) : column.title,
    ),
  );
  const table = h("table", { role: "grid" }, h("thead", {}, h("tr", {}, headers)), body);
  const stale = h(
    "div",
    { class: "stale", hidden: true },
    "The list has changed.",
    button("Show it from the beginning", () => restart()),
  );
  const sheet = h("div", { class: "sheet", "aria-busy": "true" }, stale, table, foot);
  const watcher = new IntersectionObserver((seen) => {
    if (seen.some((each) => each.isIntersecting) && !state.failed) next();
  });

  async function next() {
    if (state.loading || state.done) return;
    note.textContent = "Loading…";
    more.textContent = "Load more";
    try {
      await read(state.marker);
      state.failed = false;
    } catch (error) {
      state.failed = true; // the next try is the user's
      more.textContent = "Try again";
      note.textContent = `${state.rows.length ? "The next entries" : "The entries"} could not be loaded: ${error.message}`;
    }
  }

  async function read(marker) {
    state.loading = true;
    try {
      const page = await load(marker);
      state.rows = marker ? [...state.rows, ...page.rows] : page.rows;
      state.pages = marker ? state.pages + 1 : 1;
      state.marker = page.marker;
      state.done = !page.marker;
      draw();
    } finally {
      state.loading = false;
      sheet.removeAttribute("aria-busy");
    }
  }

  async function restart() {
    stale.hidden = true;
    await read("");
  }

  // Somebody else changed something. Rows that are the same stay where they are, with focus and selection. Once more pages are
  // loaded the user reads somewhere in the middle, so the list stays until it is asked for.
  function refresh() {
    if (state.due || !state.pages) return;
    state.due = setTimeout(async () => {
      state.due = null;
      if (!sheet.isConnected) return;
      if (state.loading) refresh();
      else if (state.pages > 1) stale.hidden = false;
      else await read("").catch(() => {}); // the connection is reported elsewhere
    }, PAUSE);
  }

  function draw() {
    const focused = body.contains(document.activeElement) ? document.activeElement.closest("tr").record : null;
    place(sorted().map(reuse([...body.children])));
    if (focused && !body.contains(document.activeElement))
      [...body.children].find((line) => key(line.record) === key(focused))?.focus();
    const count = state.rows.length.toLocaleString("en");
    note.textContent = state.done
      ? `${count} ${state.rows.length === 1 ? "entry" : "entries"}`
      : `${count} loaded, there are more`;
    more.hidden = state.done;
    const isEmpty = state.done && !state.rows.length;
    if (isEmpty) sheet.replaceChildren(none ?? empty("Nothing here", ""));
    else if (!table.isConnected) sheet.replaceChildren(stale, table, foot);
  }

  // The row that shows the same record already, or a new one.
  function reuse(shown) {
    const known = new Map(shown.map((line) => [JSON.stringify(line.record), line]));
    return (each) => {
      const text = JSON.stringify(each);
      const line = known.get(text) ?? row(each);
      known.delete(text);
      return line;
    };
  }

  function place(lines) {
    const wanted = new Set(lines);
    [...body.children].filter((line) => !wanted.has(line)).forEach((line) => line.remove());
    let at = body.firstElementChild;
    for (const line of lines) {
      if (line === at) at = at.nextElementSibling;
      else body.insertBefore(line, at);
    }
  }

  function row(each) {
    const select = guarded(() => choose(each, line));
    const line = h(
      "tr",
      { class: `row ${rowClass(each)}`, tabindex: "0", onclick: select, onkeydown: keys },
      columns.map((column) => h("td", { class: column.className ?? "" }, column.show(each))),
    );
    line.record = each;
    if (state.selected !== null && key(each) === state.selected) line.setAttribute("aria-selected", "true");
    return line;
  }

  async function choose(each, line) {
    body.querySelector("[aria-selected]")?.removeAttribute("aria-selected");
    line.setAttribute("aria-selected", "true");
    state.selected = key(each);
    await open(each);
  }

  function keys(event) {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
    const line = event.currentTarget;
    const lines = body.children;
    const to = {
      ArrowDown: line.nextElementSibling,
      j: line.nextElementSibling,
      ArrowUp: line.previousElementSibling,
      k: line.previousElementSibling,
      Home: lines[0],
      End: lines[lines.length - 1],
    }[event.key];
    if (to) {
      to.focus();
      event.preventDefault();
    }
    if (event.key === "Enter") {
      line.click();
      event.preventDefault();
    }
  }

  function sortBy(column) {
    state.descending = state.sort === column && !state.descending;
    state.sort = column;
    headers.forEach(
      (each, number) =>
        each.removeAttribute("aria-sort") ??
        (columns[number] === column && each.setAttribute("aria-sort", state.descending ? "descending" : "ascending")),
    );
    draw();
  }

  function sorted() {
    if (!state.sort) return state.rows;
    const value = state.sort.sort;
    const found = [...state.rows].sort((one, other) => (value(one) < value(other) ? -1 : value(one) > value(other) ? 1 : 0));
    return state.descending ? found.reverse() : found;
  }

  watcher.observe(foot);
  return { element: sheet, next, refresh };
}
