// The concurrency view of an object: ETag, lease with countdown, timeline, handles and locks, messages in flight. It updates itself.

import { storage, watch } from "./api.js";
import { ask, button, bytes, copy, facts, field, h, moment, sheet, span } from "./dom.js";

// place: [service, account, name, path?]. Draws into `panel`; returns what ends the updates. `history(state)` gives the actions on a
// past state, and `changed()` is called when the object is not what it was.
export function concurrency(panel, place, { readOnly, history, changed: onchange } = {}) {
  const [service, account, ...names] = place;
  let state = null;
  let offset = 0;
  const parts = {
    etag: h("section", { class: "part" }),
    lease: h("section", { class: "part" }),
    timeline: h("section", { class: "part" }),
    handles: h("section", { class: "part" }),
    messages: h("section", { class: "part" }),
  };
  panel.append(...Object.values(parts));
  const remaining = (until) => (Date.parse(until) - Date.now() - offset) / 1000;
  const stop = watch(
    { service, account, path: names.join("/") },
    {
      object: (found) => {
        const changed = state?.etag && found.etag && state.etag !== found.etag;
        if (stateOf(state) !== stateOf(found)) onchange?.();
        state = found;
        if (found.now) offset = Date.parse(found.now) - Date.now();
        if (found.kind === "missing") {
          Object.values(parts).forEach((each) => each.replaceChildren());
          parts.etag.replaceChildren(h("div", { class: "notice warn" }, found.error));
          return;
        }
        drawEtag(parts.etag, found, changed);
        drawLease(parts.lease, found, place, remaining, readOnly);
        drawTimeline(parts.timeline, found, history);
        drawHandles(parts.handles, found, place, readOnly);
        drawMessages(parts.messages, found, remaining, offset);
      },
    },
  );
  const timer = setInterval(
    () =>
      panel.querySelectorAll("[data-until]").forEach((each) => {
        const left = remaining(each.dataset.until);
        if (each.tagName === "PROGRESS") each.value = Math.max(left, 0);
        else each.textContent = span(left);
      }),
    250,
  );
  return () => {
    clearInterval(timer);
    stop();
  };
}

const stateOf = (found) => JSON.stringify({ ...found, now: "" });

const ONLY_HISTORY = "There is no current blob of this name, only its history.";
const NO_BLOB = "There is no blob of this name any more.";

function drawEtag(part, found, changed) {
  if (!found.etag) {
    part.replaceChildren(
      found.kind === "blob" ? h("div", { class: "notice warn" }, found.history.length ? ONLY_HISTORY : NO_BLOB) : "",
    );
    return;
  }
  part.replaceChildren(
    h("h2", {}, "Current state"),
    h(
      "div",
      { class: changed ? "flash" : "" },
      facts([
        [
          "ETag",
          h(
            "span",
            {},
            h("span", { class: "mono" }, found.etag),
            " ",
            button("Copy", () => copy(found.etag), "link"),
          ),
        ],
        ["Changed", moment(found.changed)],
        ["Size", found.size_bytes === undefined ? "" : bytes(found.size_bytes)],
        ["Uncommitted blocks", found.uncommitted_blocks ? String(found.uncommitted_blocks) : ""],
      ]),
    ),
  );
}

const KINDS = { leased: "bad", breaking: "warn", available: "good", expired: "", broken: "" };

function drawLease(part, found, place, remaining, readOnly) {
  const lease = found.lease;
  if (!lease) {
    part.replaceChildren();
    return;
  }
  const until = lease.ends;
  const act = (action, headers = {}) => leaseAction(place, action, headers);
  const mine = { "x-ms-lease-id": lease.id };
  const held = lease.state === "leased";
  const actions = readOnly
    ? []
    : [
        !["leased", "breaking"].includes(lease.state) && button("Acquire…", () => acquire(act)),
        (held || lease.state === "expired") && lease.id && button("Renew", () => act("renew", mine)),
        held && button("Release", () => act("release", mine)),
        held && button("Break", () => act("break"), "danger"),
      ];
  part.replaceChildren(
    h("h2", {}, "Lease"),
    h(
      "div",
      { class: "lease" },
      h("span", { class: `mark ${KINDS[lease.state]}`, "data-lease": lease.state }, lease.state),
      until
        ? h("span", { class: "countdown", "data-until": until, role: "timer" }, span(remaining(until)))
        : held
          ? h("span", { class: "countdown" }, "infinite")
          : "",
      h("span", { class: "grow" }),
      actions,
    ),
    until && lease.duration_seconds > 0
      ? h("progress", {
          max: lease.duration_seconds,
          value: Math.max(remaining(until), 0),
          "data-until": until,
          "aria-label": "Time left",
        })
      : "",
    lease.id
      ? facts([
          [
            "Holder's lease id",
            h(
              "span",
              {},
              h("span", { class: "mono" }, lease.id),
              " ",
              button("Copy", () => copy(lease.id), "link"),
            ),
          ],
        ])
      : h("span", { class: "dim" }, "Everybody may write."),
  );
}

function leaseAction(place, action, headers) {
  const query = place.length > 3 ? { comp: "lease" } : { comp: "lease", restype: place[0] === "file" ? "share" : "container" };
  return storage("PUT", place, { query, headers: { "x-ms-lease-action": action, ...headers } });
}

async function acquire(act) {
  const seconds = h(
    "select",
    {},
    ["15", "30", "60"].map((each) => h("option", { value: each }, `${each} seconds`)),
    h("option", { value: "-1" }, "infinite"),
  );
  await ask("Acquire a lease", field("Duration", seconds), {
    confirm: "Acquire",
    result: () => act("acquire", { "x-ms-lease-duration": seconds.value }),
  });
}

function drawTimeline(part, found, history) {
  if (!found.history) {
    part.replaceChildren();
    return;
  }
  const current = found.etag
    ? [h("li", { class: "current" }, h("strong", {}, "current"), h("span", { class: "dim" }, ` since ${moment(found.changed)}`))]
    : [];
  const past = found.history.map((each) =>
    h(
      "li",
      { class: each.kind.startsWith("deleted") ? "gone" : "" },
      h("strong", {}, each.kind),
      h(
        "span",
        { class: "dim" },
        ` ${moment(each.id)}${each.size === null || each.size === undefined ? "" : ` · ${bytes(each.size)}`}${each.expires ? ` · kept until ${moment(each.expires)}` : ""}`,
      ),
      h("div", { class: "mono dim" }, each.id),
      history ? h("div", { class: "bar" }, history(each)) : "",
    ),
  );
  part.replaceChildren(
    h("h2", {}, "Timeline"),
    h("ul", { class: "timeline" }, current, past.length ? past : h("li", { class: "gone dim" }, "no snapshots or versions")),
  );
}

function drawHandles(part, found, place, readOnly) {
  if (!found.handles) {
    part.replaceChildren();
    return;
  }
  const close = (handle) =>
    storage("PUT", place, { query: { comp: "forceclosehandles" }, headers: { "x-ms-handle-id": handle.id } });
  const row = (handle) =>
    h(
      "tr",
      {},
      h(
        "td",
        { class: "name" },
        handle.path || "/",
        h("div", { class: "dim" }, `${handle.client} · since ${moment(handle.opened)}`),
      ),
      h(
        "td",
        {},
        handle.access.join(", ") || "attributes",
        h("div", { class: "dim" }, `lets others ${handle.shares.join(", ") || "nothing"}`),
      ),
      h(
        "td",
        {},
        handle.delete_pending ? h("span", { class: "mark bad" }, "delete pending") : "",
        handle.locks.map((lock) =>
          h(
            "div",
            {},
            h(
              "span",
              { class: `mark ${lock.exclusive ? "bad" : ""}` },
              `${lock.exclusive ? "exclusive" : "shared"} ${lock.start}–${lock.start + lock.length - 1}`,
            ),
          ),
        ),
      ),
      h("td", {}, readOnly || place.length < 4 ? "" : button("Close", () => close(handle), "danger")),
    );
  part.replaceChildren(
    h("h2", {}, "Open handles and locks"),
    found.handles.length
      ? sheet(["Handle", "Access", "Locks", ""], found.handles.map(row))
      : h("span", { class: "dim" }, "No SMB client has it open."),
  );
}

function drawMessages(part, found, remaining, offset) {
  if (!found.messages) {
    part.replaceChildren();
    return;
  }
  const now = Date.now() + offset;
  const row = (each) =>
    h(
      "tr",
      {},
      h("td", { class: "mono name" }, each.id),
      h(
        "td",
        {},
        each.dequeue_count
          ? h("span", { class: "mark warn" }, `in flight, taken ${each.dequeue_count}×`)
          : h("span", { class: "mark" }, "delayed"),
      ),
      h("td", { class: "num" }, span((now - Date.parse(each.receipt_issued)) / 1000)),
      h("td", { class: "num", "data-until": each.reappears }, span(remaining(each.reappears))),
    );
  part.replaceChildren(
    h("h2", {}, `Messages in flight (${found.messages.length} of ${found.message_count} messages)`),
    found.messages.length
      ? sheet(["Message", "State", "Receipt age", "Reappears in"], found.messages.map(row), ["", "", "num", "num"])
      : h("span", { class: "dim" }, "Every message can be received now."),
  );
}
