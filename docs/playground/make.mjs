// node make.mjs FOLDER: makes the tables of the grammar and the checked library with the Python of the page, and puts
// them and the bytecode of all modules into FOLDER/dpl.zip.
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const folder = resolve(process.argv[2]);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide/pyodide.mjs`));
const python = await loadPyodide({ indexURL: `${folder}/pyodide/` });
python.unpackArchive(new Uint8Array(readFileSync(`${folder}/dpl.zip`)), "zip", { extractDir: "/dpl" });
python.runPython(`
import compileall, shutil, sys
sys.path.insert(0, "/dpl")
sys.setrecursionlimit(100000)
import driver
driver.make()
compileall.compile_dir("/dpl", quiet=1, invalidation_mode=__import__("py_compile").PycInvalidationMode.UNCHECKED_HASH)
shutil.make_archive("/made", "zip", "/dpl")
`);
writeFileSync(`${folder}/dpl.zip`, python.FS.readFile("/made.zip"));
