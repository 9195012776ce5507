// Uploads: files from a dialog or dropped on the page, several at once, each with a progress bar.

import { bytes, h, toast } from "./dom.js";

const TOGETHER = 3;

export function chooseFiles() {
  return new Promise((resolve) => {
    const input = h("input", { type: "file", multiple: true, hidden: true });
    input.addEventListener("change", () => { resolve([...input.files]); input.remove(); });
    input.addEventListener("cancel", () => { resolve([]); input.remove(); });
    document.body.append(input);
    input.click();
  });
}

export function uploader() {
  const element = h("div", { class: "uploads" });
  async function run(files, put) {
    const waiting = [...files];
    let failed = 0;
    const one = async () => {
      for (let file = waiting.shift(); file; file = waiting.shift()) {
        const bar = h("progress", { max: Math.max(file.size, 1), value: 0, "aria-label": `Upload of ${file.name}` });
        const note = h("span", { class: "dim" }, bytes(file.size));
        const line = h("div", {}, h("span", { class: "wrap" }, file.path ?? file.name), bar, note);
        element.append(line);
        try {
          await put(file, (sent) => { bar.value = sent; });
          line.remove();
        } catch (error) {
          failed += 1;
          note.textContent = error.message;
          note.className = "mark bad";
        }
      }
    };
    await Promise.all(Array.from({ length: TOGETHER }, one));
    if (files.length) toast(failed ? `${failed} of ${files.length} uploads failed.` : `${files.length} ${files.length === 1 ? "file" : "files"} uploaded.`, failed > 0);
  }
  return { element, run };
}

export function acceptDrops(area, take) {
  const over = (event) => { if ([...event.dataTransfer.types].includes("Files")) { event.preventDefault(); area.classList.add("drop"); } };
  const leave = (event) => { if (!area.contains(event.relatedTarget)) area.classList.remove("drop"); };
  const drop = async (event) => {
    event.preventDefault();
    area.classList.remove("drop");
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.());
    const plain = [...event.dataTransfer.files];
    const files = entries.some((each) => each?.isDirectory) ? (await Promise.all(entries.filter(Boolean).map((each) => filesBelow(each, "")))).flat() : plain;
    take(files);
  };
  const listeners = { dragover: over, dragleave: leave, drop };
  Object.entries(listeners).forEach(([name, listener]) => area.addEventListener(name, listener));
  return () => Object.entries(listeners).forEach(([name, listener]) => area.removeEventListener(name, listener));
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
