// The list of all containers, queues, tables or shares of an account, and the dialogs that it shares with other pages.

import { go, remember } from "./app.js";
import { ask, button, confirmed, empty, field, h, moment, toast } from "./dom.js";
import { pagedList } from "./list.js";

// Asks for a name; `use(name)` may refuse it. Resolves to the name, or null.
export async function newName(title, label, initial, use) {
  const input = h("input", { value: initial, required: true, autocomplete: "off", spellcheck: false });
  const done = await ask(title, field(label, input), { confirm: "OK", result: async () => { await use(input.value); return input.value; } });
  return done;
}

export async function serviceList({ account, service, main, query, server }, { title, singular, load, columns, create, remove }) {
  const state = { search: query.search ?? "" };
  const holder = h("div");
  const search = h("input", { type: "search", placeholder: "Search by prefix", value: state.search, "aria-label": "Search by prefix" });
  let timer = null;
  search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => { state.search = search.value; remember({ search: search.value }); draw(); }, 200); });
  const add = async () => { const name = await newName(`New ${singular}`, "Name", "", create); if (name) go([account, service, name]); };
  main.append(h("div", { class: "bar" }, h("h1", {}, title), search, h("span", { class: "grow" }), server.readOnly ? "" : button(`New ${singular}`, add, "primary")), holder);

  async function draw() {
    const gone = async (event, name) => {
      event.stopPropagation();
      if (await confirmed(`Delete the ${singular}?`, `${name} and everything in it is deleted.`, "Delete")) { await remove(name); toast("Deleted."); await draw(); }
    };
    const list = pagedList({
      load: (marker) => load(marker, state.search),
      columns: [{ title: "Name", className: "name", show: (row) => h("strong", {}, row.name), sort: (row) => row.name }, ...columns,
        { title: "Changed", className: "time", show: (row) => moment(row.changed), sort: (row) => Date.parse(row.changed) || 0 },
        { title: "", className: "right", show: (row) => (server.readOnly ? "" : button("Delete", (event) => gone(event, row.name), "link")) }],
      open: (row) => go([account, service, row.name]),
      none: empty(state.search ? `No ${singular} begins with that` : `There is no ${singular} yet`, server.readOnly ? "" : `Create one here or with any client.`),
    });
    holder.replaceChildren(list.element);
    await list.next();
  }
  await draw();
}
