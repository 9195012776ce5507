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
  const parameters = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null));
  const target = `${storagePath(service, account, ...names)}${[...parameters].length ? `?${parameters}` : ""}`;
  return send(method, target, { headers: { "x-ms-version": VERSION, ...headers }, ...rest });
}

export const xml = (method, place, options) => storage(method, place, { ...options, type: "document" });

// XMLHttpRequest, since it parses XML without touching HTML and reports the progress of uploads.
export function send(method, target, { headers = {}, body = null, type = "text", progress = null } = {}) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, target);
    request.responseType = type;
    request.setRequestHeader("X-Verditer-Explorer", "1");
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined && value !== null && value !== "") request.setRequestHeader(name, value);
    }
    if (progress) request.upload.onprogress = (event) => progress(event.loaded);
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
  return new Refused(request.status, code, message || `${code || "The request was refused"} (${request.status}).`);
}

export const child = (element, name) => element?.getElementsByTagName(name)[0]?.textContent ?? "";
export const listed = (answer, name) => [...answer.content.getElementsByTagName(name)];

// Blob and file names that XML cannot hold arrive percent-encoded.
export function nameOf(element) {
  const name = [...element.children].find((each) => each.tagName === "Name");
  return name?.getAttribute("Encoded") === "true" ? decodeURIComponent(name.textContent) : name?.textContent ?? "";
}

// A stream of events. It is closed while the tab is hidden: browsers allow six connections to a host, over all tabs.
export function watch(query, handlers) {
  let source = null;
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(`/api/events?${new URLSearchParams(query)}`);
    for (const [name, handler] of Object.entries(handlers)) source.addEventListener(name, (event) => handler(JSON.parse(event.data)));
  };
  const close = () => { source?.close(); source = null; };
  const changed = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", changed);
  open();
  return () => { document.removeEventListener("visibilitychange", changed); close(); };
}
