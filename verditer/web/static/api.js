// Requests to the admin port: its JSON API, Azure's REST API below /storage, and server-sent events.

const VERSION = "2025-01-05";

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const get = async (path, query = {}) => JSON.parse((await send("GET", `/api/${path}?${new URLSearchParams(query)}`)).text);
export const post = async (path, document) =>
  JSON.parse((await send("POST", `/api/${path}`, { body: JSON.stringify(document) })).text);
export const control = async (path, document) => send("POST", `/control/${path}`, { body: JSON.stringify(document) });

// A name is one path segment: an encoded slash keeps "." and ".." inside names from being resolved by the browser.
export const storagePath = (service, account, ...names) =>
  `/storage/${service}/${[account, ...names].map(encodeURIComponent).join("/")}`;

export function storage(method, place, { query = {}, headers = {}, ...rest } = {}) {
  const [service, account, ...names] = place;
  const parameters = new URLSearchParams(
    Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null),
  );
  const target = `${storagePath(service, account, ...names)}${[...parameters].length ? `?${parameters}` : ""}`;
  return send(method, target, { headers: { "x-ms-version": VERSION, ...headers }, ...rest });
}

export const xml = (method, place, options) => storage(method, place, { ...options, type: "document" });

// XMLHttpRequest, since it parses XML without touching HTML and reports the progress of uploads.
export function send(method, target, { headers = {}, body = null, type = "text", progress = null, signal = null } = {}) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, target);
    request.responseType = type;
    request.setRequestHeader("X-Verditer-Explorer", "1");
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined && value !== null && value !== "") request.setRequestHeader(name, value);
    }
    if (progress) request.upload.onprogress = (event) => progress(event.loaded);
    signal?.addEventListener("abort", () => request.abort());
    request.onabort = () => reject(new Refused(0, "", "Cancelled."));
    request.onerror = () => reject(new Refused(0, "", "The server does not answer."));
    request.onload = async () => {
      const answer = { status: request.status, header: (name) => request.getResponseHeader(name), request };
      if (type === "text") answer.text = request.response;
      else answer.content = request.response;
      if (request.status >= 200 && request.status < 300) resolve(answer);
      else reject(await refusal(request, type));
    };
    request.send(body);
  });
}

async function refusal(request, type) {
  let code = request.getResponseHeader("x-ms-error-code") ?? "";
  let message = "";
  const text = type === "text" ? request.response : type === "blob" && request.response ? await request.response.text() : "";
  if (type === "document" && request.response) {
    message = request.response.querySelector("Message")?.textContent ?? "";
  } else if (text.trimStart().startsWith("{")) {
    const document = JSON.parse(text);
    const error = document["odata.error"] ?? {};
    code = code || error.code || document.code || "";
    message = error.message?.value ?? document.error ?? "";
  } else {
    message = /<Message>([^]*?)<\/Message>/.exec(text)?.[1] ?? "";
  }
  message = message.split("\nRequestId")[0];
  if (request.status === 401) message = "The session has ended. Open the link that the server printed when it started.";
  return new Refused(request.status, code, message || request.statusText || `${code || "The request was refused"} (${request.status}).`);
}

export const child = (element, name) => element?.getElementsByTagName(name)[0]?.textContent ?? "";
export const listed = (answer, name) => [...answer.content.getElementsByTagName(name)];

// The metadata that an answer carries, and the headers that store it.
export function metadataOf(answer) {
  const names = (answer.header("x-verditer-metadata-names") ?? "").split(",");
  const asStored = new Map(names.map((name) => [name.toLowerCase(), name])); // the browser gives them in lower case
  return Object.fromEntries(
    answer.request
      .getAllResponseHeaders()
      .trim()
      .split("\r\n")
      .map((line) => line.split(": "))
      .filter(([name]) => name.startsWith("x-ms-meta-"))
      .map(([name, ...value]) => [asStored.get(name.slice(10)) ?? name.slice(10), value.join(": ")]),
  );
}
export const asMetadata = (entries) =>
  Object.fromEntries(Object.entries(entries).map(([key, value]) => [`x-ms-meta-${key}`, value]));

// Blob and file names that XML cannot hold arrive percent-encoded.
export function nameOf(element) {
  const name = [...element.children].find((each) => each.tagName === "Name");
  return name?.getAttribute("Encoded") === "true" ? decodeURIComponent(name.textContent) : (name?.textContent ?? "");
}

// One stream of events serves everything on the page. It is closed while the tab is hidden: browsers allow six connections to a
// host, over all tabs. `onopen` is called whenever the stream begins: what changed before was not heard.
const watchers = new Set();
let source = null;

export function watch(query, handlers, onopen = () => {}) {
  const watcher = { query, handlers, onopen };
  watchers.add(watcher);
  reopen();
  return () => {
    watchers.delete(watcher);
    reopen();
  };
}

// Tells a page that a list of containers, queues, tables, shares or of their contents may have changed.
export const watchList = (service, account, list, changed) =>
  watch({ topics: "changes", service, account, list }, { changed }, changed);

function reopen() {
  source?.close();
  source = null;
  if (document.hidden || !watchers.size) return;
  const queries = [...watchers].map((each) => each.query);
  const topics = [...new Set(queries.flatMap((each) => each.topics?.split(",") ?? []))].join(",");
  const opened = new EventSource(`/api/events?${new URLSearchParams({ ...Object.assign({}, ...queries), topics })}`);
  source = opened;
  opened.onopen = () => {
    showConnection("");
    watchers.forEach((each) => each.onopen());
  };
  opened.onerror = () => lost(opened);
  for (const name of ["requests", "metrics", "object", "changed"]) {
    opened.addEventListener(name, (event) => watchers.forEach((each) => each.handlers[name]?.(JSON.parse(event.data))));
  }
}

document.addEventListener("visibilitychange", reopen);

const AGAIN = 3000; // milliseconds until a refused stream is tried again
const showConnection = (problem) => document.dispatchEvent(new CustomEvent("connection", { detail: problem }));

// The browser tries again by itself unless the server refused the stream; then an ordinary request tells the reason.
async function lost(stream) {
  if (stream !== source) return;
  showConnection("The server does not answer. What is shown may be old.");
  if (stream.readyState !== EventSource.CLOSED) return;
  await get("overview").catch((error) => showConnection(error.message));
  setTimeout(() => {
    if (stream === source) reopen();
  }, AGAIN);
}
