// Queues: peek, put, get, update, delete, clear, and the messages that consumers hold at the moment.

import { child, listed, nameOf, storage, xml } from "./api.js";
import { go, showDetail, tabs } from "./app.js";
import { ask, button, confirmed, empty, field, guarded, h, moment, sheet, toast } from "./dom.js";
import { concurrency } from "./inspect.js";
import { serviceList } from "./service.js";
import { sharing } from "./share.js";

export function queueService(page) {
  return serviceList(page, {
    title: "Queues",
    singular: "queue",
    load: async (marker, prefix) => {
      const answer = await xml("GET", ["queue", page.account, ""], { query: { comp: "list", maxresults: 200, prefix, marker } });
      return {
        rows: listed(answer, "Queue").map((each) => ({ name: nameOf(each) })),
        marker: child(answer.content, "NextMarker"),
      };
    },
    columns: [{ title: "Messages", className: "num", show: (row) => messageCount(page.account, row.name) }],
    changed: false,
    create: (name) => storage("PUT", ["queue", page.account, name]),
    remove: (name) => storage("DELETE", ["queue", page.account, name]),
  });
}

// About how many messages a queue has. The list does not tell, so each queue is asked.
function messageCount(account, name) {
  const shown = h("span", { class: "dim" }, "…");
  storage("HEAD", ["queue", account, name], { query: { comp: "metadata" } }).then(
    (answer) => {
      shown.textContent = Number(answer.header("x-ms-approximate-messages-count")).toLocaleString("en");
      shown.className = "";
    },
    () => {
      shown.textContent = "";
    },
  );
  return shown;
}

export async function queuePage(page) {
  const { account, name, main, server } = page;
  const place = ["queue", account, name];
  const held = h("div");
  const waiting = h("div");
  const flight = h("div", { class: "card" });
  const taken = new Map();
  const messages = (answer) =>
    listed(answer, "QueueMessage").map((each) => ({
      id: child(each, "MessageId"),
      receipt: child(each, "PopReceipt"),
      text: child(each, "MessageText"),
      inserted: child(each, "InsertionTime"),
      expires: child(each, "ExpirationTime"),
      count: child(each, "DequeueCount"),
      visible: child(each, "TimeNextVisible"),
    }));
  const peek = async () => {
    const found = messages(await xml("GET", [...place, "messages"], { query: { peekonly: "true", numofmessages: 32 } }));
    waiting.replaceChildren(
      h("h2", {}, `Waiting messages${found.length === 32 ? " (first 32)" : ""}`),
      found.length
        ? table(found, () => "")
        : h("div", { class: "sheet" }, empty("No message is waiting", "Messages that consumers hold are shown below.")),
    );
  };
  const drawHeld = () =>
    held.replaceChildren(...(taken.size ? [h("h2", {}, "Taken here"), table([...taken.values()], actions)] : []));
  const actions = (message) => [
    button("Update…", () => update(message)),
    " ",
    button(
      "Delete",
      async () => {
        await storage("DELETE", [...place, "messages", message.id], { query: { popreceipt: message.receipt } });
        taken.delete(message.id);
        drawHeld();
        toast("Deleted.");
      },
      "danger",
    ),
  ];
  async function put() {
    const text = h("textarea", { required: true }),
      delay = h("input", { type: "number", min: 0, value: "0" }),
      ttl = h("input", { type: "number", min: -1, value: "604800" }),
      encoded = h("input", { type: "checkbox" });
    if (
      await ask(
        "Put a message",
        [
          field("Text", text),
          h("label", { class: "check part" }, encoded, "encode as Base64, as Azure Functions expects"),
          field("Delay in seconds", delay),
          field("Time to live in seconds (-1: for ever)", ttl),
        ],
        {
          confirm: "Put",
          result: () =>
            storage("POST", [...place, "messages"], {
              query: { visibilitytimeout: delay.value, messagettl: ttl.value },
              body: messageXml(encoded.checked ? base64(text.value) : text.value),
            }),
        },
      )
    )
      await peek();
  }
  async function receive() {
    const count = h("input", { type: "number", min: 1, max: 32, value: "1" }),
      hidden = h("input", { type: "number", min: 1, max: 604800, value: "30" });
    const answer = await ask("Get messages", [field("How many", count), field("Hidden from others for seconds", hidden)], {
      confirm: "Get",
      result: () =>
        xml("GET", [...place, "messages"], { query: { numofmessages: count.value, visibilitytimeout: hidden.value } }),
    });
    if (!answer) return;
    const found = messages(answer);
    found.forEach((each) => taken.set(each.id, each));
    if (!found.length) toast("No message is visible.");
    drawHeld();
    await peek();
  }
  async function update(message) {
    const decoded = readable(message.text);
    const text = h("textarea", {}, decoded ?? message.text),
      hidden = h("input", { type: "number", min: 0, value: "30" });
    const initial = text.value; // a text area changes line breaks, so a text that was not edited is stored as it is
    const edited = () => (text.value === initial ? message.text : decoded === null ? text.value : base64(text.value));
    const label = decoded === null ? "Text" : "Text, stored as Base64";
    const answer = await ask("Update the message", [field(label, text), field("Hidden for further seconds", hidden)], {
      confirm: "Update",
      result: () =>
        storage("PUT", [...place, "messages", message.id], {
          query: { popreceipt: message.receipt, visibilitytimeout: hidden.value },
          body: messageXml(edited()),
        }),
    });
    if (!answer) return;
    taken.set(message.id, { ...message, text: edited(), receipt: answer.header("x-ms-popreceipt") });
    drawHeld();
    toast("Updated.");
  }
  const writes = server.readOnly
    ? []
    : [
        button("Put message", put, "primary"),
        button("Get messages", receive),
        button(
          "Clear",
          async () => {
            if (await confirmed("Clear the queue?", "All messages are deleted, also those that consumers hold.", "Clear")) {
              await storage("DELETE", [...place, "messages"]);
              taken.clear();
              drawHeld();
              await peek();
            }
          },
          "danger",
        ),
        button(
          "Delete queue",
          async () => {
            if (await confirmed("Delete the queue?", `${name} is deleted.`, "Delete")) {
              await storage("DELETE", place);
              go([account, "queue"]);
            }
          },
          "danger",
        ),
      ];
  const share = () => {
    const drawn = tabs([["Share", (panel) => sharing(panel, { service: "queue", account, path: name, server })]]);
    showDetail(name, drawn.element, { onclose: drawn.stop });
  };
  main.append(
    h(
      "div",
      { class: "bar" },
      h("h1", {}, name),
      button("Peek again", peek),
      h("span", { class: "grow" }),
      button("Share", share),
      writes,
    ),
    h("section", { class: "part" }, held),
    h("section", { class: "part" }, waiting),
    flight,
  );
  await peek();
  page.onleave(concurrency(flight, place, { readOnly: server.readOnly, changed: guarded(peek) }));
}

const base64 = (text) => btoa(Array.from(new TextEncoder().encode(text), (each) => String.fromCharCode(each)).join(""));

function messageXml(text) {
  const root = document.implementation.createDocument(null, "QueueMessage");
  root.documentElement.appendChild(root.createElement("MessageText")).textContent = text;
  return new XMLSerializer().serializeToString(root);
}

// Many clients send Base64; both forms are shown when it decodes to text.
function readable(text) {
  if (text.length % 4 || !/^[A-Za-z0-9+/]{8,}={0,2}$/.test(text)) return null;
  try {
    const decoded = new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(atob(text), (each) => each.charCodeAt(0)));
    return /^[\P{Cc}\s]*$/u.test(decoded) ? decoded : null;
  } catch {
    return null;
  }
}

function table(found, actions) {
  const row = (each) =>
    h(
      "tr",
      {},
      h(
        "td",
        { class: "name" },
        h("span", { class: "mono wrap" }, readable(each.text) ?? each.text),
        readable(each.text) ? h("div", { class: "dim" }, "decoded from Base64") : "",
      ),
      h("td", { class: "num" }, each.count),
      h("td", { class: "time" }, moment(each.inserted)),
      h("td", { class: "time" }, moment(each.expires)),
      h("td", { class: "right" }, actions(each)),
    );
  return sheet(["Text", "Taken", "Put", "Expires", ""], found.map(row), ["", "num", "time", "time"]);
}
