// The interpreter runs here, so that the page stays alive while a program runs, and an endless one can be stopped.
// A message {id, call, args} is answered by {id, answer} or {id, failure}; output comes before it as {id, output}.
import { exchanged } from "./statics.mjs";

let python = null;

// The code of Python is read twice and loaded once: Pyodide gets the answer that is here already.
function shared(url) {
  const load = self.fetch, answer = load(url), copy = answer.then((response) => response.clone());
  self.fetch = (asked, ...rest) => (String(asked) === url ? answer : load(asked, ...rest));
  return copy;
}

async function bytes(answer) {
  return new Uint8Array(await (await answer).arrayBuffer());
}

// The memory that Python had when everything was loaded (`make.mjs`).
async function remembered(code) {
  const { body } = await fetch("snapshot.gz");
  const memory = bytes(new Response(body.pipeThrough(new DecompressionStream("gzip"))));
  return exchanged(await memory, await bytes(code));
}

async function begin() {
  const indexURL = new URL("./pyodide/", self.location).href;
  const files = bytes(fetch("data.zip")), memory = remembered(shared(`${indexURL}pyodide.asm.wasm`));
  const { loadPyodide } = await import("./pyodide/pyodide.mjs");
  const pyodide = await loadPyodide({ indexURL, _loadSnapshot: memory });
  pyodide.setStdin({ stdin: () => null });
  pyodide.unpackArchive(await files, "zip", { extractDir: "/dpl" });
  python = pyodide.globals.get("sys").modules.get("driver");
}

let waiting = "", asker = 0;

function flush() {
  if (waiting) self.postMessage({ id: asker, output: waiting });
  waiting = "";
}

function say(text) {
  waiting += text;
  if (waiting.length > 4096) flush();
}

const ready = begin().then(() => self.postMessage({ ready: true }), (error) => self.postMessage({ failure: String(error) }));

self.onmessage = async ({ data: { id, call, args } }) => {
  await ready;
  asker = id;
  try {
    const answer = python[call](...args, ...(call === "execute" || call === "debug" ? [say] : []));
    flush();
    self.postMessage({ id, answer: JSON.parse(answer) });
  } catch (error) {  // the browser's stack or memory is used up: this worker is lost
    flush();
    self.postMessage({ id, failure: String(error) });
  }
};
