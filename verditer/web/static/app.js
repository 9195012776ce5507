// The frame of every page: address, side bar, breadcrumbs, theme, keyboard. A page is a function that draws into #main.

import { get } from "./api.js";
import { blobService, containerPage } from "./blobs.js";
import { $, ask, button, facts, h, toast, visible } from "./dom.js";
import { feedPage } from "./feed.js";
import { fileService, sharePage } from "./files.js";
import { overviewPage } from "./overview.js";
import { queuePage, queueService } from "./queues.js";
import { tablePage, tableService } from "./tables.js";

const SERVICES = { blob: "Blob containers", queue: "Queues", table: "Tables", file: "File shares" };
const LISTS = { blob: blobService, queue: queueService, table: tableService, file: fileService };
const CONTENTS = { blob: containerPage, queue: queuePage, table: tablePage, file: sharePage };

let server = null;
let leave = [];

// #/account/service/name/rest?key=value, each part percent-encoded.
export function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return {
    parts: path.split("/").filter(Boolean).map(decodeURIComponent),
    query: Object.fromEntries(new URLSearchParams(query ?? "")),
  };
}

export function link(parts, query = {}) {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export const go = (parts, query) => {
  location.hash = link(parts, query);
};

// Changes the query of the address without drawing the page again: deep links stay right while a page is used.
export function remember(query) {
  const { parts, query: current } = place();
  history.replaceState(null, "", link(parts, { ...current, ...query }));
}

export function showDetail(title, content, { onclose = () => {} } = {}) {
  closeDetail();
  $("#detail").replaceChildren(
    h(
      "div",
      { class: "head" },
      h("h1", {}, visible(title)),
      h("button", { type: "button", class: "icon", "aria-label": "Close", title: "Close (Esc)", onclick: leaveDetail }, "×"),
    ),
    content,
  );
  $("#detail").hidden = false;
  $("#detail").onclosed = onclose;
}

export function closeDetail() {
  const detail = $("#detail");
  if (!detail.hidden) detail.onclosed?.();
  detail.hidden = true;
  detail.replaceChildren();
}

// The keyboard goes on where it was: at the row whose details were shown.
function leaveDetail() {
  closeDetail();
  remember({ show: "", tab: "" });
  $("#main tr[aria-selected]")?.focus();
}

// A tab is drawn when it is chosen; what it returns, if anything, is called when it is left.
export function tabs(entries, chosen, remembered) {
  const panel = h("div", { role: "tabpanel" });
  let end = null;
  let drawing = 0; // a tab that is still being drawn when another one is chosen ends at once
  const stop = () => {
    end?.();
    end = null;
    drawing += 1;
  };
  const buttons = entries.map(([name, draw]) =>
    h("button", { type: "button", role: "tab", onclick: () => choose(name, draw) }, name),
  );
  const step = (event) => {
    const to = buttons[buttons.indexOf(event.target) + ({ ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? NaN)];
    if (to) {
      to.focus();
      to.click();
      event.preventDefault();
    }
  };
  async function choose(name, draw) {
    stop();
    const mine = drawing;
    const content = h("div");
    buttons.forEach((each) => each.setAttribute("aria-selected", each.textContent === name));
    panel.replaceChildren(content);
    remembered?.(name);
    try {
      const ended = await draw(content);
      if (mine === drawing) end = ended ?? null;
      else ended?.();
    } catch (error) {
      content.replaceChildren(h("div", { class: "notice bad" }, error.message));
    }
  }
  const first = entries.find(([name]) => name === chosen) ?? entries[0];
  choose(...first);
  return { element: h("div", {}, h("div", { class: "tabs", role: "tablist", onkeydown: step }, buttons), panel), stop };
}

// A server may serve some services only.
const served = () => Object.entries(SERVICES).filter(([service]) => service in server.endpoints);

function drawSide(parts) {
  const item = (target, text, current) => h("a", { class: "item", href: target, "aria-current": current ? "page" : null }, text);
  const accounts = server.accounts.map((account) => [
    h("div", { class: "account" }, account),
    served().map(([service, title]) =>
      item(link([account, service]), title, parts[0] === account && parts[1] === service),
    ),
  ]);
  $("#side").replaceChildren(
    h("a", { class: "brand", href: "#/" }, h("img", { src: "/static/icon.svg", alt: "" }), "Verditer"),
    item("#/", "Overview", !parts.length),
    item("#/live", "Live requests", parts[0] === "live" && parts.length === 1),
    ...accounts.flat(3),
    h(
      "footer",
      {},
      `Version ${server.version}`,
      server.readOnly ? h("div", {}, h("span", { class: "mark warn" }, "read-only")) : null,
    ),
  );
}

function drawTop(parts, query) {
  const crumbs = [h("a", { href: "#/" }, "Overview")];
  if (parts[0] === "live" && parts.length === 1) crumbs.push(h("span", {}, "Live requests"));
  else if (parts.length) {
    const [account, service, name] = parts;
    crumbs.push(h("a", { href: link([account]) }, account));
    if (service) crumbs.push(h("a", { href: link([account, service]) }, SERVICES[service] ?? service));
    if (name) crumbs.push(h("a", { href: link([account, service, name]) }, name));
    const folders = (query.prefix ?? "").split("/").slice(0, -1);
    folders.forEach((folder, number) =>
      crumbs.push(
        h(
          "a",
          { href: link([account, service, name], { prefix: `${folders.slice(0, number + 1).join("/")}/` }) },
          visible(folder) || "(empty)",
        ),
      ),
    );
  }
  crumbs[crumbs.length - 1].setAttribute("aria-current", "location");
  const trail = crumbs.flatMap((each, number) =>
    number ? [h("span", { class: "sep", "aria-hidden": "true" }, "/"), each] : [each],
  );
  $("#top").replaceChildren(
    h(
      "button",
      { type: "button", class: "icon menu", "aria-label": "Menu", onclick: () => document.body.classList.toggle("menu") },
      "☰",
    ),
    h("nav", { "aria-label": "Breadcrumbs" }, trail),
    button("Keys", showKeys, "icon"),
    button("Theme", switchTheme, "icon"),
  );
}

async function draw() {
  leave.forEach((each) => each());
  const ends = (leave = []);
  closeDetail();
  document.body.classList.remove("menu");
  const { parts, query } = place();
  const main = $("#main");
  const [account, service, name, ...rest] = parts;
  try {
    drawSide(parts);
    drawTop(parts, query);
    main.replaceChildren();
    document.title = parts.length ? `${parts[parts.length - 1]} · Verditer` : "Verditer";
    const page = {
      account,
      service,
      name,
      rest,
      query,
      server,
      main,
      onleave: (end) => (leave === ends ? ends.push(end) : end()),
    };
    if (!parts.length) await overviewPage(page);
    else if (account === "live" && parts.length === 1) await feedPage(page);
    else if (server.accounts.includes(account) && !service) location.replace(link([account, served()[0][0]]));
    else if (service in SERVICES && !(service in server.endpoints))
      throw new Error(`This server does not serve the ${service} service; --services chooses.`);
    else if (!server.accounts.includes(account) || !(service in SERVICES)) throw new Error("There is no such page.");
    else if (!name) await LISTS[service](page);
    else await CONTENTS[service](page);
  } catch (error) {
    if (leave === ends) main.prepend(h("div", { class: "notice bad", role: "alert" }, error.message));
  }
}

function switchTheme() {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(dark ? "light" : "dark");
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
}

const showKeys = () =>
  ask(
    "Keyboard",
    facts([
      [h("kbd", {}, "/"), "search or filter"],
      [h("span", {}, h("kbd", {}, "↓"), " ", h("kbd", {}, "↑")), "next and previous row (also j and k)"],
      [h("kbd", {}, "Enter"), "open the row"],
      [h("kbd", {}, "→"), "from a row to its details"],
      [h("kbd", {}, "Esc"), "close the details, back to the row"],
      [h("kbd", {}, "u"), "upload"],
      [h("kbd", {}, "o"), "overview"],
      [h("kbd", {}, "l"), "live requests"],
      [h("kbd", {}, "?"), "this help"],
    ]),
    { confirm: "Close", cancel: "" },
  );

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("dialog")) return;
  const rows = () => $("#main tr.row[aria-selected]") ?? $("#main tr.row");
  if (event.key === "ArrowDown" && event.target.matches("#main input[type=search]")) {
    rows()?.focus();
    event.preventDefault();
  }
  if (event.target.closest("input, textarea, select")) return;
  const first = () => {
    if (event.target.closest("tr.row, #detail, #side") === null) rows()?.focus();
  };
  const actions = {
    ArrowDown: first,
    j: first,
    ArrowRight: () => {
      if (event.target.closest("tr.row")) $("#detail:not([hidden]) [role=tab][aria-selected=true]")?.focus();
    },
    "/": () => $("#main input[type=search], #main input.filter")?.focus(),
    "?": showKeys,
    o: () => go([]),
    l: () => go(["live"]),
    u: () => $("#main [data-key=u]")?.click(),
    Escape: leaveDetail,
  };
  if (!actions[event.key] || event.defaultPrevented) return;
  if (!event.key.startsWith("Arrow")) event.preventDefault();
  actions[event.key]();
}

// What is shown gets old while nothing arrives, so it says so.
function showConnection({ detail: problem }) {
  $("#lost").textContent = problem;
  $("#lost").hidden = !problem;
}

async function start() {
  document.addEventListener("connection", showConnection);
  const theme = localStorage.getItem("theme");
  if (theme) document.documentElement.dataset.theme = theme;
  if (new URLSearchParams(location.search).has("token")) history.replaceState(null, "", `/${location.hash}`); // not into the history
  try {
    server = await get("overview");
  } catch (error) {
    $("#main").replaceChildren(h("div", { class: "notice bad", role: "alert" }, error.message));
    return;
  }
  addEventListener("hashchange", draw);
  addEventListener("keydown", onKey);
  addEventListener("unhandledrejection", (event) => toast(event.reason?.message ?? "Something failed.", true));
  await draw();
}

start();
