// A program, its messages, its output, and stepping: the part that the playground and the tour share.
import { Editor } from "./editor.js";
import { Interpreter } from "./interpreter.js";

const $ = (id) => document.getElementById(id);
const SVG = /(<svg[\s\S]*?<\/svg>)/;

export class Playground {
  constructor() {
    this.editor = new Editor($("editor"), () => { this.checkSoon(); this.leave(); });
    this.interpreter = new Interpreter((state, text) => {
      $("status").textContent = text;
      document.body.dataset.state = state;
    });
    this.written = "";
    $("run").onclick = () => this.run();
    $("stop").onclick = () => this.interpreter.stop();
    $("debug").onclick = () => this.debug();
    for (const button of document.querySelectorAll("[data-move]")) button.onclick = () => this.go(button.dataset.move);
    document.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); this.run(); }
    });
  }

  show(text) {
    this.editor.text = text;
    this.clear();
    this.leave();
    $("messages").replaceChildren();
  }

  // ---- output

  clear() {
    this.written = "";
    $("output").replaceChildren();
  }

  print(text) {
    this.written += text;
    $("output").replaceChildren(...this.written.split(SVG).filter(Boolean).map((part) => {
      if (SVG.test(part)) {
        const picture = document.createElement("img");
        picture.src = "data:image/svg+xml;utf8," + encodeURIComponent(part);
        picture.alt = "a picture that the program draws";
        return picture;
      }
      const pre = document.createElement("pre");
      pre.textContent = part.replace(/^\n/, "");
      return pre;
    }));
  }

  tell(messages) {
    const marks = {};
    $("messages").replaceChildren(...messages.map((message) => {
      const [box, title, text] = ["div", "strong", "pre"].map((tag) => document.createElement(tag));
      box.className = message.severity;
      box.tabIndex = 0;  // a wide message is scrolled by keyboard
      [title.textContent] = message.rendered.split("\n", 1);
      text.textContent = message.rendered.slice(title.textContent.length + 1);
      box.append(title, text);
      const place = message.span?.start;
      if (place) {
        marks[place.line] ??= message.severity;
        const link = document.createElement("button");
        link.textContent = `go to line ${place.line}`;
        link.onclick = () => this.editor.go(place.line, place.utf16);
        box.append(link);
      }
      return box;
    }));
    this.editor.mark(marks);
  }

  complain(error) {
    const box = document.createElement("div");
    box.className = "error";
    box.textContent = error.message;
    $("messages").replaceChildren(box);
  }

  // Stop stands where Run stood, so the keyboard's focus moves to it, and back.
  async busy(work) {
    if (document.body.dataset.state === "running") return;
    const asked = document.activeElement;
    document.body.dataset.state = "running";
    $("status").textContent = "running …";
    if (asked.offsetParent === null) $("stop").focus();
    const begun = performance.now();
    try {
      await work();
      document.body.dataset.state = "ready";
      $("status").textContent = `${((performance.now() - begun) / 1000).toFixed(2)} s`;
    } catch (error) {  // what was being stepped through is gone
      this.leave();
      this.complain(error);
      if (document.body.dataset.state === "running") document.body.dataset.state = "ready";
    }
    if ([document.body, $("stop")].includes(document.activeElement)) (asked.offsetParent ? asked : $("run")).focus();
  }

  // ---- running

  run() {
    return this.busy(async () => {
      this.clear();
      this.leave();
      this.tell(await this.interpreter.call("execute", [this.editor.text], (text) => this.print(text)));
    });
  }

  checkSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      const text = this.editor.text;
      if (document.body.dataset.state !== "ready") return;
      const messages = await this.interpreter.call("check", [text]).catch(() => null);
      if (messages && text === this.editor.text) this.tell(messages);
    }, 400);
  }

  // ---- stepping

  debug() {
    return this.busy(async () => {
      this.clear();
      const messages = await this.interpreter.call("debug", [this.editor.text]);
      this.tell(messages);
      if (messages.some((message) => message.severity === "error")) return;
      document.body.classList.add("debugging");
      await this.move("step");
    });
  }

  go(how) { return this.busy(() => this.move(how)); }

  async move(how) {
    const seen = await this.interpreter.call("move", [how], (text) => this.print(text));
    this.editor.mark(seen.line ? { [seen.line]: seen.reverse ? "reverse" : "forward" } : {});
    $("where").textContent = seen.text || (seen.reverse ? "the reverse sweep passes back through this line" : "before this line");
    document.body.classList.toggle("reverse", seen.reverse);
    $("calls").textContent = seen.calls.join("  ←  ");
    const none = { name: "", value: "no name has a value here", derivative: "" };
    const rows = seen.variables.length ? seen.variables : [none];
    $("variables").replaceChildren(...rows.map(({ name, value, derivative }) => {
      const row = document.createElement("tr");
      row.append(...[name, value, derivative].map((text) => {
        const cell = document.createElement("td");
        cell.textContent = text;
        return cell;
      }));
      return row;
    }));
  }

  leave() { document.body.classList.remove("debugging", "reverse"); }
}

// ---- permanent links: the program is in the address

const packed = async (stream, bytes) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

export async function link(text) {
  const bytes = await packed(new CompressionStream("deflate-raw"), new TextEncoder().encode(text));
  return "#p=" + btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

export async function linked(hash) {
  const code = new URLSearchParams(hash.slice(1)).get("p");
  if (!code) return null;
  const bytes = Uint8Array.from(atob(code.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  return new TextDecoder().decode(await packed(new DecompressionStream("deflate-raw"), bytes));
}
