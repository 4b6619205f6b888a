// An editor: a text area, and below it the same text in colours.

const KEYWORDS = /^(?:and|as|begin|do|else|end|expect|export|extern|for|fun|if|import|in|let|loop|match|of|open|rec|reset|shift|then|type|when|while|with|not|true|false)$/;
const DERIVATIVES = /^(?:grad|value_and_grad|vjp|jvp|diff|stop_grad|checkpoint|checkpoint_loop|with_vjp|with_jvp)$/;
const TOKEN = /(--[^\n]*)|(\(\*[\s\S]*?(?:\*\)|$))|(\$?"(?:[^"\\\n]|\\.)*"?)|('[A-Za-z_]\w*)|(\d[\w.]*(?:[eE][+-]?\d+)?)|([^\W\d][\w']*)|(->|[!$%&*+\-./<=>?@^|~:]+)/gu;

const escaped = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);

export function coloured(text) {
  let html = "", at = 0;
  for (const found of text.matchAll(TOKEN)) {
    const [whole, line, block, string, variable, number, word] = found;
    const kind = line || block ? "comment" : string ? "string" : variable ? "variable" : number ? "number"
      : word ? (KEYWORDS.test(word) ? "keyword" : DERIVATIVES.test(word) ? "derivative" : /^\p{Lu}/u.test(word) ? "constructor" : "") : "operator";
    html += escaped(text.slice(at, found.index)) + (kind ? `<span class="${kind}">${escaped(whole)}</span>` : escaped(whole));
    at = found.index + whole.length;
  }
  return html + escaped(text.slice(at)) + "\n";
}

export class Editor {
  constructor(box, changed) {
    box.classList.add("editor");
    box.innerHTML = '<pre class="numbers" aria-hidden="true"></pre><div class="text"><pre class="colours" aria-hidden="true"></pre>'
      + '<textarea spellcheck="false" autocapitalize="off" autocomplete="off" wrap="off" aria-label="program"'
      + ' title="Ctrl+Enter runs the program, Tab leaves the editor"></textarea></div>';
    [this.numbers, this.colours, this.area] = ["pre.numbers", "pre.colours", "textarea"].map((s) => box.querySelector(s));
    this.marks = new Map();
    this.area.addEventListener("input", () => { this.marks.clear(); this.drawSoon(); changed(); });
    this.area.addEventListener("keydown", (event) => this.key(event));
  }

  get text() { return this.area.value; }

  set text(value) { this.area.value = value; this.marks.clear(); this.draw(); }

  // Lines that are marked: {line: kind}.
  mark(lines) { this.marks = new Map(Object.entries(lines).map(([line, kind]) => [Number(line), kind])); this.draw(); }

  // A text that is pasted may come as many changes.
  drawSoon() { this.frame ??= requestAnimationFrame(() => { this.frame = null; this.draw(); }); }

  draw() {
    this.colours.innerHTML = coloured(this.text);
    const lines = this.text.split("\n");
    this.numbers.innerHTML = lines.map((_, i) => `<span class="${this.marks.get(i + 1) ?? ""}">${i + 1}</span>`).join("\n");
    this.area.style.height = `${lines.length * 1.5 + 1.5}em`;
    this.area.style.width = `${Math.max(...lines.map((l) => l.length), 10) + 4}ch`;
  }

  go(line, column) {
    const start = this.text.split("\n").slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0) + column - 1;
    this.area.focus();
    this.area.setSelectionRange(start, start);
  }

  // Enter keeps the indentation.  Tab leaves the editor, so that the page can be used by keyboard alone.
  key(event) {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const { selectionStart: at } = this.area;
    const line = this.text.slice(this.text.lastIndexOf("\n", at - 1) + 1, at);
    document.execCommand("insertText", false, "\n" + line.match(/^ */)[0] + (/(=|->|then|else|do|with)\s*$/.test(line) ? "  " : ""));
  }
}
