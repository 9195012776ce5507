// Addresses, signatures and connection strings for one object or account, each copied with one click.

import { get, post } from "./api.js";
import { button, copy, field, h } from "./dom.js";

const LETTERS = {
  blob: [
    ["r", "read"],
    ["a", "add"],
    ["c", "create"],
    ["w", "write"],
    ["d", "delete"],
    ["l", "list"],
    ["t", "tags"],
  ],
  file: [
    ["r", "read"],
    ["c", "create"],
    ["w", "write"],
    ["d", "delete"],
    ["l", "list"],
  ],
  queue: [
    ["r", "read"],
    ["a", "add"],
    ["u", "update"],
    ["p", "process"],
  ],
  table: [
    ["r", "read"],
    ["a", "add"],
    ["u", "update"],
    ["d", "delete"],
  ],
};

export async function sharing(panel, { service, account, path, server }) {
  const secret = (label, text) => {
    const input = h("input", { readonly: true, value: text, "aria-label": label });
    return field(
      label,
      h(
        "span",
        { class: "secret" },
        input,
        button("Copy", () => copy(input.value), "primary"),
      ),
    );
  };
  const base = `${server.endpoints[service]}/${account}`;
  const encoded = path.split("/").map(encodeURIComponent).join("/");
  const letters = LETTERS[service].map(([letter, name]) => [
    letter,
    h("input", { type: "checkbox", checked: letter === "r" || (letter === "l" && !path.includes("/")) }),
    name,
  ]);
  const hours = h(
    "select",
    {},
    [
      ["1", "1 hour"],
      ["24", "1 day"],
      ["168", "1 week"],
      ["8760", "1 year"],
    ].map(([value, text]) => h("option", { value }, text)),
  );
  const made = h("div");
  const make = async () => {
    const permissions = letters
      .filter(([, box]) => box.checked)
      .map(([letter]) => letter)
      .join("");
    const answer = await post("sas", { service, account, path, permissions, seconds: 3600 * Number(hours.value) });
    made.replaceChildren(secret("URL with signature", answer.url), secret("Signature (SAS token)", answer.sas));
    await copy(answer.url);
  };
  panel.append(
    secret("URL", `${base}/${encoded}`),
    h(
      "section",
      { class: "part" },
      h("h2", {}, "Shared access signature"),
      h(
        "div",
        { class: "bar" },
        letters.map(([, box, name]) => h("label", { class: "check" }, box, name)),
      ),
      h("div", { class: "bar" }, h("label", { class: "check" }, "valid for", hours), button("Make and copy", make, "primary")),
      made,
    ),
    secret("Connection string", (await get("connection-string", { account })).connectionString),
  );
}
