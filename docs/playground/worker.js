// The interpreter runs here, so that the page stays alive while a program runs, and an endless one can be stopped.
// A message {id, call, args} is answered by {id, answer} or {id, failure}; output comes before it as {id, output}.
let python = null;

// Python begins with the memory that it had when everything was loaded (`make.mjs`).
async function begin() {
  const { loadPyodide } = await import("./pyodide/pyodide.mjs");
  const files = fetch("data.zip").then((response) => response.arrayBuffer());
  const memory = fetch("snapshot.gz")
    .then((response) => new Response(response.body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
  const pyodide = await loadPyodide({ indexURL: new URL("./pyodide/", self.location).href, _loadSnapshot: memory });
  pyodide.setStdin({ stdin: () => null });
  pyodide.unpackArchive(new Uint8Array(await files), "zip", { extractDir: "/dpl" });
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
