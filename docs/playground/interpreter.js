// The worker from the page's side: calls are promises; a program that runs too long can be stopped.

export class Interpreter {
  constructor(status) {
    this.status = status;
    this.calls = new Map();
    this.number = 0;
    this.start();
  }

  start() {
    const begun = performance.now();
    this.status("loading", "loading …");
    this.worker = new Worker("worker.js", { type: "module" });
    this.worker.onerror = () => this.status("failed", "the interpreter could not be loaded");
    this.worker.onmessage = ({ data }) => {
      if (data.ready) {
        this.seconds = (performance.now() - begun) / 1000;
        return this.status("ready", `ready in ${this.seconds.toFixed(1)} s`);
      }
      const call = this.calls.get(data.id);
      if (data.output !== undefined) return call?.output(data.output);
      if (data.failure !== undefined && !call) return this.status("failed", data.failure);
      this.calls.delete(data.id);
      if (data.failure === undefined) return call?.done(data.answer);
      call?.failed(new Error(`${reason(data.failure)}, and was started again`));
      this.stop();
    };
  }

  // Call a function of driver.py.
  call(name, args = [], output = () => {}) {
    const id = ++this.number;
    return new Promise((done, failed) => {
      this.calls.set(id, { output, done, failed });
      this.worker.postMessage({ id, call: name, args });
    });
  }

  // End what runs, and start again.
  stop() {
    this.worker.terminate();
    for (const { failed } of this.calls.values()) failed(new Error("stopped"));
    this.calls.clear();
    this.start();
  }
}

// Why the interpreter is lost: an exception of Python, unless its stack or memory is used up, is a bug in DPL.
function reason(failure) {
  const said = failure.startsWith("PythonError") ? failure.match(/^\w+(Error|Exception): .*/gm).slice(1).at(-1) : undefined;
  const isBug = said && !/^(RecursionError|MemoryError)/.test(said);
  return isBug ? `the interpreter met a bug in DPL (${said})` : "the interpreter used up the browser's stack or memory";
}
