// Uploads: files from a dialog, dropped on the page or pasted, several at once, each with a progress bar that can be cancelled.

import { storage } from "./api.js";
import { bytes, confirmed, guarded, h, toast } from "./dom.js";

const TOGETHER = 3;
const BLOCK = 8 * 1024 * 1024;
const RANGE = 4 * 1024 * 1024;
const NAMED = 5; // existing files that the question names

function chooseFiles() {
  return new Promise((resolve) => {
    const input = h("input", { type: "file", multiple: true, hidden: true });
    input.addEventListener("change", () => {
      resolve([...input.files]);
      input.remove();
    });
    input.addEventListener("cancel", () => {
      resolve([]);
      input.remove();
    });
    document.body.append(input);
    input.click();
  });
}

const nameOf = (file) => file.path ?? file.name;

// exists(file) tells whether the upload would replace something; put(file, progress, signal) uploads.
export const uploadButton = (put) =>
  h(
    "button",
    { type: "button", class: "primary", "data-key": "u", onclick: guarded(async () => put(await chooseFiles())) },
    "Upload",
  );

export function uploader({ exists, put }) {
  const element = h("div", { class: "uploads" });

  async function run(files) {
    const wanted = await withoutUnwanted(files, exists);
    let failed = 0;
    await together(wanted, async (file) => {
      if (!(await upload(file))) failed += 1;
    });
    const done = wanted.length - failed;
    if (failed) toast(`${failed} of ${wanted.length} uploads failed.`, true);
    else if (done) toast(`${done} ${done === 1 ? "file" : "files"} uploaded.`);
  }

  async function upload(file) {
    const cancel = new AbortController();
    const bar = h("progress", { max: Math.max(file.size, 1), value: 0, "aria-label": `Upload of ${nameOf(file)}` });
    const note = h("span", { class: "dim" }, bytes(file.size));
    const close = () => {
      cancel.abort();
      line.remove();
    };
    const line = h(
      "div",
      {},
      h("span", { class: "wrap" }, nameOf(file)),
      bar,
      note,
      h(
        "button",
        { type: "button", class: "icon", "aria-label": `Cancel the upload of ${nameOf(file)}`, title: "Cancel", onclick: close },
        "×",
      ),
    );
    element.append(line);
    try {
      await put(
        file,
        (sent) => {
          bar.value = sent;
        },
        cancel.signal,
      );
      line.remove();
      return true;
    } catch (error) {
      note.textContent = error.message;
      note.className = "mark bad wrap";
      return false;
    }
  }
  return { element, run };
}

// Nothing is replaced without a question.
async function withoutUnwanted(files, exists) {
  const existing = [];
  await together(files, async (file) => {
    if (await exists(file)) existing.push(file);
  });
  if (!existing.length) return files;
  const names =
    existing.slice(0, NAMED).map(nameOf).join(", ") + (existing.length > NAMED ? ` and ${existing.length - NAMED} more` : "");
  const replace = await confirmed(
    existing.length === 1 ? "Replace the file?" : `Replace ${existing.length} files?`,
    `${names} exists already. Cancel keeps what is stored and uploads the others.`,
    "Replace",
  );
  return replace ? files : files.filter((file) => !existing.includes(file));
}

async function together(files, work) {
  const waiting = [...files];
  const one = async () => {
    for (let file = waiting.shift(); file; file = waiting.shift()) await work(file);
  };
  await Promise.all(Array.from({ length: TOGETHER }, one));
}

// Files that are dropped on `area`, or pasted anywhere but into a field. Returns what ends it.
export function acceptFiles(area, take) {
  const over = (event) => {
    if ([...event.dataTransfer.types].includes("Files")) {
      event.preventDefault();
      area.classList.add("drop");
    }
  };
  const leave = (event) => {
    if (!area.contains(event.relatedTarget)) area.classList.remove("drop");
  };
  const drop = guarded(async (event) => {
    event.preventDefault();
    area.classList.remove("drop");
    await take(await filesOf(event.dataTransfer));
  });
  const paste = guarded(async (event) => {
    if (event.target.closest("input, textarea, dialog") || !event.clipboardData.files.length) return;
    event.preventDefault();
    await take([...event.clipboardData.files]);
  });
  const listeners = { dragover: over, dragleave: leave, drop };
  Object.entries(listeners).forEach(([name, listener]) => area.addEventListener(name, listener));
  document.addEventListener("paste", paste);
  return () => {
    Object.entries(listeners).forEach(([name, listener]) => area.removeEventListener(name, listener));
    document.removeEventListener("paste", paste);
  };
}

// A dropped folder brings everything below it.
async function filesOf(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.());
  const plain = [...transfer.files];
  if (!entries.some((each) => each?.isDirectory)) return plain;
  return (await Promise.all(entries.filter(Boolean).map((each) => filesBelow(each, "")))).flat();
}

async function filesBelow(entry, folder) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    file.path = folder + entry.name;
    return [file];
  }
  const reader = entry.createReader();
  const found = [];
  for (let more = await read(reader); more.length; more = await read(reader)) found.push(...more);
  return (await Promise.all(found.map((each) => filesBelow(each, `${folder}${entry.name}/`)))).flat();
}

const read = (reader) => new Promise((resolve, reject) => reader.readEntries(resolve, reject));

// Whether there is a blob or a file.
export async function isThere(place) {
  try {
    await storage("HEAD", place);
    return true;
  } catch (error) {
    if (error.status !== 404) throw error;
    return false;
  }
}

export async function uploadBlob(here, name, file, progress, signal) {
  const place = [...here, name];
  const type = file.type || "application/octet-stream";
  if (file.size <= BLOCK) {
    return storage("PUT", place, {
      headers: { "x-ms-blob-type": "BlockBlob", "Content-Type": type },
      body: file,
      progress,
      signal,
    });
  }
  const ids = [];
  for (let start = 0; start < file.size; start += BLOCK) {
    const id = btoa(String(ids.length).padStart(8, "0"));
    await storage("PUT", place, {
      query: { comp: "block", blockid: id },
      body: file.slice(start, start + BLOCK),
      progress: (sent) => progress(start + sent),
      signal,
    });
    ids.push(id);
  }
  const list = `<?xml version="1.0" encoding="utf-8"?><BlockList>${ids.map((id) => `<Latest>${id}</Latest>`).join("")}</BlockList>`;
  return storage("PUT", place, { query: { comp: "blocklist" }, headers: { "x-ms-blob-content-type": type }, body: list, signal });
}

export async function uploadFile(at, path, file, progress, signal) {
  const folders = path.split("/").slice(0, -1);
  if (file.path?.includes("/")) {
    for (let depth = 1; depth <= folders.length; depth += 1) {
      await storage("PUT", at(folders.slice(0, depth).join("/")), { query: { restype: "directory" } }).catch((error) => {
        if (error.status !== 409) throw error;
      });
    }
  }
  await storage("PUT", at(path), {
    headers: {
      "x-ms-type": "file",
      "x-ms-content-length": String(file.size),
      "x-ms-content-type": file.type || "application/octet-stream",
    },
    signal,
  });
  for (let start = 0; start < file.size; start += RANGE) {
    const end = Math.min(start + RANGE, file.size);
    await storage("PUT", at(path), {
      query: { comp: "range" },
      headers: { "x-ms-write": "update", "x-ms-range": `bytes=${start}-${end - 1}` },
      body: file.slice(start, end),
      progress: (sent) => progress(start + sent),
      signal,
    });
  }
}
