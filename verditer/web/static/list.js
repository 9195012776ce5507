// A table of rows that is loaded page by page, sorted by a click on a column, and used with the keyboard.

import { button, empty, guarded, h } from "./dom.js";

// columns: { title, show(row), sort(row)?, className? }. load(marker) → { rows, marker }. open(row) is called for the selected one.
export function pagedList({ columns, load, open, none, rowClass = () => "" }) {
  const state = { rows: [], marker: "", done: false, loading: false, sort: null, descending: false, selected: null };
  const body = h("tbody");
  const note = h("span");
  const more = button("Load more", () => next());
  const foot = h("div", { class: "more" }, note, more);
  const headers = columns.map((column) => h("th", { class: column.className ?? "", scope: "col" },
    column.sort ? button(column.title, () => sortBy(column)) : column.title));
  const table = h("table", { role: "grid" }, h("thead", {}, h("tr", {}, headers)), body);
  const sheet = h("div", { class: "sheet" }, table, foot);
  const watcher = new IntersectionObserver((seen) => { if (seen.some((each) => each.isIntersecting)) guarded(next)(); });

  async function next() {
    if (state.loading || state.done) return;
    state.loading = true;
    note.textContent = "Loading…";
    more.textContent = "Load more";
    try {
      const page = await load(state.marker);
      state.rows.push(...page.rows);
      state.marker = page.marker;
      state.done = !page.marker;
      if (state.sort) draw();
      else body.append(...page.rows.map(row));
      foot.hidden = false;
      showNote();
    } catch (error) {
      more.textContent = "Try again";
      note.textContent = state.rows.length ? "The next entries could not be loaded." : "The entries could not be loaded.";
      throw error;
    } finally {
      state.loading = false;
    }
  }

  function showNote() {
    const count = state.rows.length.toLocaleString("en");
    note.textContent = state.done ? `${count} ${state.rows.length === 1 ? "entry" : "entries"}` : `${count} loaded, there are more`;
    more.hidden = state.done;
    if (!state.rows.length && state.done) sheet.replaceChildren(none ?? empty("Nothing here", ""));
  }

  function row(each) {
    const select = guarded(() => choose(each, line));
    const line = h("tr", { class: `row ${rowClass(each)}`, tabindex: "0", onclick: select, onkeydown: keys },
      columns.map((column) => h("td", { class: column.className ?? "" }, column.show(each))));
    line.record = each;
    return line;
  }

  async function choose(each, line) {
    body.querySelector("[aria-selected]")?.removeAttribute("aria-selected");
    line.setAttribute("aria-selected", "true");
    state.selected = each;
    await open(each);
  }

  function keys(event) {
    const line = event.currentTarget;
    const to = { ArrowDown: line.nextElementSibling, j: line.nextElementSibling, ArrowUp: line.previousElementSibling, k: line.previousElementSibling }[event.key];
    if (to) { to.focus(); event.preventDefault(); }
    if (event.key === "Enter") { line.click(); event.preventDefault(); }
  }

  function sortBy(column) {
    state.descending = state.sort === column && !state.descending;
    state.sort = column;
    headers.forEach((each, number) => each.removeAttribute("aria-sort") ?? (columns[number] === column && each.setAttribute("aria-sort", state.descending ? "descending" : "ascending")));
    draw();
  }

  function draw() {
    const key = state.sort.sort;
    const sorted = [...state.rows].sort((one, other) => (key(one) < key(other) ? -1 : key(one) > key(other) ? 1 : 0));
    if (state.descending) sorted.reverse();
    body.replaceChildren(...sorted.map(row));
  }

  watcher.observe(foot);
  return { element: sheet, next, rows: () => state.rows };
}
