// Tables: queries with explained errors, and entities edited in place. A conflict shows both versions side by side.

import { storage, watchList } from "./api.js";
import { closeDetail, go, remember, showDetail, tabs } from "./app.js";
import { ask, button, confirmed, empty, guarded, h, moment, toast, visible } from "./dom.js";
import { cut, entityForm, keyOf, own, parseEntities, shown, valuesOf } from "./entities.js";
import { concurrency } from "./inspect.js";
import { pagedList } from "./list.js";
import { serviceList } from "./service.js";
import { sharing } from "./share.js";

const UNBROKEN = 40; // characters of a value that is shown on one line, as a GUID is
const FULL = { Accept: "application/json;odata=fullmetadata", DataServiceVersion: "3.0", MaxDataServiceVersion: "3.0;NetFx" };

export function tableService(page) {
  return serviceList(page, {
    title: "Tables",
    singular: "table",
    load: async (marker, prefix) => {
      const filter = prefix ? `TableName ge '${quoted(prefix)}' and TableName lt '${quoted(prefix)}~'` : "";
      const answer = await storage("GET", ["table", page.account, "Tables"], {
        query: { $top: 200, $filter: filter, NextTableName: marker },
        headers: { Accept: "application/json;odata=nometadata" },
      });
      return {
        rows: JSON.parse(answer.text).value.map((each) => ({ name: each.TableName })),
        marker: answer.header("x-ms-continuation-NextTableName") ?? "",
      };
    },
    columns: [],
    changed: false,
    create: (name) =>
      storage("POST", ["table", page.account, "Tables"], {
        headers: { "Content-Type": "application/json", Accept: "application/json;odata=nometadata" },
        body: JSON.stringify({ TableName: name }),
      }),
    remove: (name) => storage("DELETE", ["table", page.account, `Tables('${name}')`]),
  });
}

const quoted = (text) => text.replaceAll("'", "''");
const entityPlace = (account, table, entity) => [
  "table",
  account,
  `${table}(PartitionKey='${quoted(entity.PartitionKey)}',RowKey='${quoted(entity.RowKey)}')`,
];

export async function tablePage(page) {
  const { account, name: table, query, main, server } = page;
  const filter = h("input", {
    class: "filter grow mono",
    placeholder: "Filter, for example: PartitionKey eq 'orders' and Total gt 100",
    value: query.filter ?? "",
    "aria-label": "Filter",
    spellcheck: false,
  });
  const problem = h("div", { role: "alert" });
  const holder = h("div");
  const state = { list: null, shown: query.show ?? null };
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Enter") guarded(run)();
  });
  const writes = server.readOnly
    ? []
    : [
        button("New entity", create, "primary"),
        button(
          "Delete table",
          async () => {
            if (await confirmed("Delete the table?", `${table} and all its entities are deleted.`, "Delete")) {
              await storage("DELETE", ["table", account, `Tables('${table}')`]);
              go([account, "table"]);
            }
          },
          "danger",
        ),
      ];
  const share = () => {
    const drawn = tabs([["Share", (panel) => sharing(panel, { service: "table", account, path: table, server })]]);
    showDetail(table, drawn.element, { onclose: drawn.stop });
  };
  main.append(
    h("div", { class: "bar" }, h("h1", {}, table), h("span", { class: "grow" }), button("Share", share), writes),
    h("div", { class: "bar" }, filter, button("Query", run, "primary")),
    problem,
    holder,
  );

  async function load(marker) {
    const [partition, row] = marker ? JSON.parse(marker) : ["", ""];
    const answer = await storage("GET", ["table", account, `${table}()`], {
      query: { $filter: filter.value.trim(), $top: 100, NextPartitionKey: partition, NextRowKey: row },
      headers: FULL,
    });
    const next = answer.header("x-ms-continuation-NextPartitionKey");
    return {
      rows: parseEntities(answer.text).value,
      marker: next ? JSON.stringify([next, answer.header("x-ms-continuation-NextRowKey") ?? ""]) : "",
    };
  }

  async function run() {
    remember({ filter: filter.value });
    problem.replaceChildren();
    let first;
    try {
      first = await load("");
    } catch (error) {
      if (error.status !== 400 && error.status !== 501) throw error;
      problem.replaceChildren(
        h(
          "div",
          { class: "notice bad" },
          h("strong", {}, "The filter cannot be read. "),
          error.message,
          ...mistakes(filter.value).map((each) => h("div", {}, each)),
        ),
      );
      return;
    }
    const names = [...new Set(first.rows.flatMap(own))].slice(0, 8);
    state.list = pagedList({
      key: keyOf,
      selected: state.shown,
      load: async (marker) => (marker || !first ? load(marker) : [first, (first = null)][0]),
      columns: [
        { title: "PartitionKey", className: "name", show: (row) => visible(row.PartitionKey), sort: (row) => row.PartitionKey },
        { title: "RowKey", className: "name", show: (row) => visible(row.RowKey), sort: (row) => row.RowKey },
        ...names.map((name) => ({
          title: name,
          className: typeof first.rows.find((row) => row[name] !== undefined)?.[name] === "number" ? "num" : "wrap",
          show: (row) => h("span", { class: shown(row[name]).length > UNBROKEN ? "" : "short" }, cut(shown(row[name]))),
          sort: (row) => row[name] ?? "",
        })),
        { title: "Timestamp", className: "time", show: (row) => moment(row.Timestamp), sort: (row) => row.Timestamp },
      ],
      open: show,
      none: empty(
        filter.value ? "No entity matches" : "This table is empty",
        filter.value || server.readOnly ? "" : "Create an entity here or with any client.",
      ),
    });
    holder.replaceChildren(state.list.element);
    await state.list.next();
  }

  function show(entity) {
    state.shown = keyOf(entity);
    remember({ show: state.shown });
    const place = ["table", account, table, entity.PartitionKey, entity.RowKey];
    const drawn = tabs([
      ["Entity", (panel) => view(panel, entity)],
      ["Concurrency", (panel) => concurrency(panel, place, server)],
      ["Share", (panel) => sharing(panel, { service: "table", account, path: table, server })],
    ]);
    showDetail(`${entity.PartitionKey} / ${entity.RowKey}`, drawn.element, { onclose: drawn.stop });
  }

  async function remove(entity) {
    if (!(await confirmed("Delete the entity?", `${entity.PartitionKey} / ${entity.RowKey}`, "Delete"))) return;
    await storage("DELETE", entityPlace(account, table, entity), {
      headers: { "If-Match": entity["odata.etag"], Accept: FULL.Accept },
    });
    toast("Deleted.");
    closeDetail();
    await run();
  }

  function view(panel, entity) {
    const actions = server.readOnly
      ? ""
      : h(
          "div",
          { class: "bar" },
          button("Edit", () => edit(panel, entity), "primary"),
          button("Delete", () => remove(entity), "danger"),
        );
    panel.replaceChildren(valuesOf(entity), actions);
  }

  // In place, with the ETag of what is shown: nothing that another client saved meanwhile is overwritten.
  function edit(panel, entity) {
    const form = entityForm(entity);
    const problem = h("div", { class: "notice bad", hidden: true, role: "alert" });
    const save = async (event) => {
      event.preventDefault();
      try {
        const changed = form.read();
        await put(changed, entity["odata.etag"]);
        toast("Saved.");
        await again(changed);
      } catch (error) {
        if (error.status === 412) {
          await resolve(form.read());
          return;
        }
        problem.textContent = error.message;
        problem.hidden = false;
      }
    };
    panel.replaceChildren(
      h(
        "form",
        { onsubmit: guarded(save) },
        form.element,
        problem,
        h(
          "div",
          { class: "bar" },
          h("button", { type: "submit", class: "primary" }, "Save"),
          button("Cancel", () => view(panel, entity)),
        ),
      ),
    );
    panel.querySelector("[aria-label^='Value of']")?.focus();
  }

  async function create() {
    const form = entityForm(null);
    const made = await ask("New entity", form.element, {
      confirm: "Save",
      wide: true,
      result: async () => {
        const entity = form.read();
        await storage("POST", ["table", account, table], {
          headers: { ...FULL, "Content-Type": "application/json" },
          body: JSON.stringify(entity),
        });
        return entity;
      },
    });
    if (made) {
      toast("Saved.");
      await again(made);
    }
  }

  const put = (entity, etag) =>
    storage("PUT", entityPlace(account, table, entity), {
      headers: { ...FULL, "Content-Type": "application/json", "If-Match": etag },
      body: JSON.stringify(entity),
    });
  const read = async (entity) => parseEntities((await storage("GET", entityPlace(account, table, entity), { headers: FULL })).text);
  async function again(entity) {
    await run();
    show(await read(entity));
  }

  // Another client saved the entity first.
  async function resolve(mine) {
    let theirs;
    try {
      theirs = await read(mine);
    } catch (error) {
      if (error.status !== 404) throw error;
      toast("The entity was deleted by another client.", true);
      return run();
    }
    const names = [...new Set([...own(theirs), ...own(mine)])];
    const column = (title, one, other) =>
      h(
        "div",
        {},
        h("h2", {}, title),
        h(
          "div",
          { class: "sheet" },
          h(
            "table",
            {},
            h(
              "tbody",
              {},
              names.map((name) =>
                h(
                  "tr",
                  { class: shown(one[name]) === shown(other[name]) ? "" : "differs" },
                  h("td", { class: "dim" }, name),
                  h("td", { class: "wrap" }, shown(one[name])),
                ),
              ),
            ),
          ),
        ),
      );
    const content = h(
      "div",
      {},
      h(
        "div",
        { class: "notice warn" },
        "Another client saved this entity after you had opened it. Nothing was overwritten. The differences are marked.",
      ),
      h("div", { class: "side-by-side" }, column("Stored now", theirs, mine), column("Yours", mine, theirs)),
    );
    const answer = await ask("Conflict", content, {
      confirm: "Overwrite with mine",
      danger: true,
      wide: true,
      result: () => put(mine, theirs["odata.etag"]),
    });
    toast(answer ? "Overwritten." : "The stored version was kept.");
    return again(mine);
  }

  page.onleave(watchList("table", account, table, () => state.list?.refresh()));
  await run();
  if (query.show) {
    const [PartitionKey, RowKey] = JSON.parse(query.show);
    show(await read({ PartitionKey, RowKey }));
  }
}

// What people who know other languages write, and how it is written here.
function mistakes(text) {
  const found = [];
  if (/==|[^<>!]=/.test(text)) found.push("Write eq instead of = or ==.");
  if (/!=|<>/.test(text)) found.push("Write ne instead of != or <>.");
  if (/&&|\|\|/.test(text)) found.push("Write and, or instead of && and ||.");
  if (/<(?!>)/.test(text)) found.push("Write lt or le instead of < or <=.");
  if (/(?<!<)>/.test(text)) found.push("Write gt or ge instead of > or >=.");
  if (/"/.test(text)) found.push("Text stands in single quotes: 'text'. A quote inside it is doubled: 'it''s'.");
  if ((text.match(/'/g) ?? []).length % 2) found.push("A single quote is missing: text stands between two of them.");
  if (/\b(like|contains|startswith|endswith|substringof)\b/i.test(text))
    found.push("There is no search inside text. For a prefix: Name ge 'abc' and Name lt 'abd'.");
  found.push(
    "Operators: eq ne gt ge lt le and or not. Values: 'text', 12, 12L, 1.5, true, datetime'2026-01-31T00:00:00Z', guid'…'.",
  );
  return found;
}
