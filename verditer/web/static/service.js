// The list of all containers, queues, tables or shares of an account, and the dialogs that it shares with other pages.

import { watchList } from "./api.js";
import { go, remember } from "./app.js";
import { ask, button, confirmed, empty, field, h, moment, toast } from "./dom.js";
import { pagedList } from "./list.js";

// Asks for a name; `use(name)` may refuse it. Resolves to the name, or null.
export function newName(title, label, initial, use, confirm = "Create") {
  const input = h("input", { value: initial, required: true, autocomplete: "off", spellcheck: false });
  return ask(title, field(label, input), {
    confirm,
    result: async () => {
      await use(input.value);
      return input.value;
    },
  });
}

// A field that searches while it is typed in, and keeps the text in the address.
export function searchField(text, search) {
  const input = h("input", { type: "search", placeholder: "Search by prefix", value: text, "aria-label": "Search by prefix" });
  let timer = null;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      remember({ search: input.value });
      search(input.value);
    }, 200);
  });
  return input;
}

// `changed`: whether the service tells when an object was changed.
export async function serviceList(
  { account, service, main, query, server, onleave },
  { title, singular, load, columns, create, remove, changed = true },
) {
  const state = { search: query.search ?? "", list: null };
  const holder = h("div");
  const search = searchField(state.search, (text) => {
    state.search = text;
    draw();
  });
  const add = async () => {
    const name = await newName(`New ${singular}`, "Name", "", create);
    if (name) go([account, service, name]);
  };
  main.append(
    h(
      "div",
      { class: "bar" },
      h("h1", {}, title),
      search,
      h("span", { class: "grow" }),
      server.readOnly ? "" : button(`New ${singular}`, add, "primary"),
    ),
    holder,
  );

  async function draw() {
    const gone = async (event, name) => {
      event.stopPropagation();
      if (await confirmed(`Delete the ${singular}?`, `${name} and everything in it is deleted.`, "Delete")) {
        await remove(name);
        toast("Deleted.");
        await draw();
      }
    };
    state.list = pagedList({
      load: (marker) => load(marker, state.search),
      columns: [
        { title: "Name", className: "name", show: (row) => h("strong", {}, row.name), sort: (row) => row.name },
        ...columns,
        ...(changed
          ? [
              {
                title: "Changed",
                className: "time",
                show: (row) => moment(row.changed),
                sort: (row) => Date.parse(row.changed) || 0,
              },
            ]
          : []),
        {
          title: "",
          className: "right",
          show: (row) => (server.readOnly ? "" : button("Delete", (event) => gone(event, row.name), "link danger")),
        },
      ],
      open: (row) => go([account, service, row.name]),
      none: empty(
        state.search ? `No ${singular} begins with that` : `There is no ${singular} yet`,
        server.readOnly ? "" : `Create one here or with any client.`,
      ),
    });
    holder.replaceChildren(state.list.element);
    await state.list.next();
  }
  onleave(watchList(service, account, "", () => state.list?.refresh()));
  await draw();
}
