// The live feed of requests. Refusals that other clients cause (409 and 412) stand out and are explained.

import { remember } from "./app.js";
import { watch } from "./api.js";
import { bytes, button, clock, empty, h, sheet, visible } from "./dom.js";

const KEPT = 1000;
const DRAWN = 300;

export async function feedPage({ main, server, query, onleave }) {
  let entries = [];
  let paused = false;
  const rows = h("tbody");
  const note = h("span", { class: "dim" });
  const option = (value, text = value) => h("option", { value }, text);
  const filters = {
    text: h("input", {
      type: "search",
      placeholder: "Path, operation or error code",
      value: query.text ?? "",
      "aria-label": "Filter by text",
    }),
    account: h(
      "select",
      { "aria-label": "Account" },
      option("", "All accounts"),
      server.accounts.map((each) => option(each)),
    ),
    service: h(
      "select",
      { "aria-label": "Service" },
      option("", "All services"),
      Object.keys(server.endpoints).map((each) => option(each)),
    ),
    status: h(
      "select",
      { "aria-label": "Status" },
      option("", "All statuses"),
      option("2", "Succeeded"),
      option("refused", "409 and 412"),
      option("4", "All 4xx"),
      option("5", "All 5xx"),
    ),
  };
  for (const name of ["account", "service", "status"]) filters[name].value = query[name] ?? "";
  const own = h("input", { type: "checkbox", checked: query.own === "1" });
  const shown = (entry) => {
    const text = filters.text.value.toLowerCase();
    const status = filters.status.value;
    if (!own.checked && entry.client === "explorer") return false;
    if (filters.account.value && entry.path.split("/")[1] !== filters.account.value) return false;
    if (filters.service.value && entry.service !== filters.service.value) return false;
    if (status === "refused" ? ![409, 412].includes(entry.status) : status && String(entry.status)[0] !== status) return false;
    return !text || `${entry.operation} ${entry.path} ${entry.code ?? ""}`.toLowerCase().includes(text);
  };
  const isFiltered = () => Object.values(filters).some((each) => each.value);
  const draw = () => {
    const found = entries.filter(shown).slice(-DRAWN).reverse();
    rows.replaceChildren(
      ...(found.length
        ? found.map(line)
        : [
            h(
              "tr",
              {},
              h("td", { colspan: "6" }, empty(...(isFiltered() ? NONE_MATCHES : NONE))),
            ),
          ]),
    );
    note.textContent = `${found.length} shown${paused ? ", paused" : ""}`;
  };
  const changed = () => {
    remember({
      ...Object.fromEntries(Object.entries(filters).map(([name, each]) => [name, each.value])),
      own: own.checked ? "1" : "",
    });
    draw();
  };
  Object.values(filters).forEach((each) => each.addEventListener("input", changed));
  own.addEventListener("input", changed);
  const pause = button("Pause", () => {
    paused = !paused;
    pause.textContent = paused ? "Continue" : "Pause";
    draw();
  });
  main.append(
    h(
      "div",
      { class: "bar" },
      h("h1", {}, "Live requests"),
      Object.values(filters),
      h("label", { class: "check" }, own, "from this explorer"),
      pause,
      button("Clear", () => {
        entries = [];
        draw();
      }),
      note,
    ),
    h(
      "div",
      { class: "feed" },
      sheet(["Time", "Status", "Operation", "Path", "Bytes", "Duration"], rows, ["time", "", "", "", "num", "num"]),
    ),
  );
  draw();
  onleave(
    watch(
      { topics: "feed" },
      {
        // from the beginning whenever the stream is opened, so entries may come twice
        requests: (more) => {
          if (paused) return;
          const known = new Set(entries.map(identity));
          entries = [...entries, ...more.filter((each) => !known.has(identity(each)))].slice(-KEPT);
          draw();
        },
      },
    ),
  );
}

const NONE_MATCHES = ["No request matches", "Fewer filters show more."];
const NONE = ["No requests yet", "Requests appear here as soon as a client sends them."];
const identity = (entry) => `${entry.id} ${entry.time}`; // a server that was started again counts from the beginning

function line(entry) {
  const refused = entry.status === 409 || entry.status === 412;
  const kind = entry.status >= 500 ? "bad" : refused ? "bad" : entry.status >= 400 ? "warn" : "good";
  return h(
    "tr",
    { class: refused ? "refused" : "", title: `${entry.requestId} · worker ${entry.worker} · ${entry.client}` },
    h("td", { class: "time" }, clock(entry.time)),
    h("td", {}, h("span", { class: `mark ${kind}` }, String(entry.status))),
    h("td", {}, entry.operation),
    h(
      "td",
      { class: "name wrap why" },
      h("span", { class: "mono" }, visible(readable(entry.path))),
      entry.code ? h("div", {}, h("strong", {}, entry.code), entry.why ? ` ${entry.why}` : "") : null,
    ),
    h("td", { class: "num" }, entry.in || entry.out ? `${bytes(entry.in)} → ${bytes(entry.out)}` : ""),
    h("td", { class: "num" }, `${entry.ms.toFixed(1)} ms`),
  );
}

function readable(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
