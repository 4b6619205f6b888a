// node make.mjs FOLDER: makes what a page starts from, with the Python of the page.  FOLDER/dpl.zip has the sources; in
// its place come snapshot.gz, the memory of Python after everything is loaded, and data.zip, the files that are read later.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { exchanged } from "./statics.mjs";

const folder = resolve(process.argv[2]), standard = `${folder}/pyodide/python_stdlib.zip`;
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide/pyodide.mjs`));
// Columns of bytecode are left out: they take a tenth of the memory, and nobody sees Python's traces.
const start = (options) => loadPyodide({
  indexURL: `${folder}/pyodide/`, env: { HOME: "/home/pyodide", PYTHONNODEBUGRANGES: "1" }, ...options,
});

// The first Python compiles everything.
const first = await start({});
first.unpackArchive(new Uint8Array(readFileSync(`${folder}/dpl.zip`)), "zip", { extractDir: "/dpl" });
first.runPython("import sys; sys.path.insert(0, '/dpl'); import freeze as first; first.make('/standard.zip')");
writeFileSync(standard, first.FS.readFile("/standard.zip"));
writeFileSync(`${folder}/data.zip`, first.FS.readFile("/data.zip"));

// The second one loads what was compiled, so that no trace of compiling is in its memory.
const second = await start({ _makeSnapshot: true });
function copy(path) {
  second.FS.mkdirTree(path);
  for (const name of first.FS.readdir(path).filter((n) => n !== "." && n !== "..")) {
    const inside = `${path}/${name}`;
    if (first.FS.isDir(first.FS.stat(inside).mode)) copy(inside);
    else second.FS.writeFile(inside, first.FS.readFile(inside));
  }
}
copy("/dpl");
second.FS.writeFile("/freeze.py", readFileSync(new URL("freeze.py", import.meta.url)));
second.runPython("import sys; sys.path[:0] = ['/dpl', '/']; import freeze; freeze.warm(); sys.path.remove('/')");
const memory = exchanged(new Uint8Array(second.makeMemorySnapshot()), readFileSync(`${folder}/pyodide/pyodide.asm.wasm`));
writeFileSync(`${folder}/snapshot.gz`, gzipSync(memory, { level: 9 }));

// Nothing is imported after this, so the standard library and the list of packages can be empty.
writeFileSync(standard, Uint8Array.from([0x50, 0x4b, 5, 6, ...new Array(18).fill(0)]));
const lock = JSON.parse(readFileSync(`${folder}/pyodide/pyodide-lock.json`, "utf8"));
writeFileSync(`${folder}/pyodide/pyodide-lock.json`, JSON.stringify({ ...lock, packages: {} }));
rmSync(`${folder}/dpl.zip`);
