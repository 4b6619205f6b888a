// Python's static data are in its WebAssembly, and again in the memory that a page starts from, a quarter of which they
// are.  There they are left out: each byte of memory is combined with that of the WebAssembly by exclusive or, so that
// what is equal becomes 0.  The same again gives the memory back.

const BASE = 1024;  // where Pyodide puts its data in memory
const DATA = 11;  // the number of the section of data

export function exchanged(memory, code) {
  const start = new DataView(memory.buffer, memory.byteOffset).getUint32(4, true) + BASE;  // after the snapshot's head
  const data = statics(code);
  for (let i = 0; i < data.length; i++) memory[start + i] ^= data[i];
  return memory;
}

// The contents of the one segment of data in a module.
function statics(code) {
  let at = 8;
  const number = () => {
    let value = 0, shift = 0, byte;
    do {
      byte = code[at++];
      value += (byte & 127) * 2 ** shift;
      shift += 7;
    } while (byte & 128);
    return value;
  };
  for (;;) {
    if (at >= code.length) throw new Error("this WebAssembly has no data");
    const kind = code[at++], length = number();
    if (kind !== DATA) {
      at += length;
      continue;
    }
    number(), number();  // how many segments there are, and the kind of the first
    while (code[at++] !== 0x0b);  // the expression that says where it begins
    const size = number();
    return code.subarray(at, at + size);
  }
}
