// The field on a page that finds what modules offer, by name, by word, by what other systems call it, or by type.
//     list -> int      float[n] -> float      what fits with the fewest choices comes first
// Types are compared as `dpl doc --search` does it (tools/search.py): is the type that is asked for an instance?

const TOKEN = /->|-\{[^}]*\}->|'?[\p{L}_][\p{L}\p{N}_.']*|\d+|\S/gu;
const NUMBERS = /^(int|float|[iuf]\d+)$/, REALS = /^(float|f\d+)$/;
const SAME = { i64: "int", f64: "float" };

// ---- reading: {fn: [argument, result]}, {array: element, size}, {tuple: [...]}, {name, args}, {variable}

function parse(text) {
  const tokens = text.match(TOKEN) ?? [];
  let at = 0;
  const need = (token) => { if (tokens[at++] !== token) throw new Error(`${token} is missing`); };
  const some = (one, between, end) => {
    const items = [one()];
    while (tokens[at] === between) { at++; items.push(one()); }
    need(end);
    return items;
  };
  const arrow = () => {
    const argument = product();
    if (!tokens[at]?.endsWith("->")) return argument;
    at++;
    return { fn: [argument, arrow()] };
  };
  const product = () => {
    const items = [applied()];
    while (tokens[at] === "*") { at++; items.push(applied()); }
    return items.length > 1 ? { tuple: items } : items[0];
  };
  const size = () => {
    let text = "";
    while (at < tokens.length && !",]".includes(tokens[at])) text += tokens[at++];
    return text;
  };
  const applied = () => {
    let type, args = null;
    if (tokens[at] === "(") {
      at++;
      const items = some(arrow, ",", ")");
      if (items.length > 1) args = items; else [type] = items;
    } else if (tokens[at]?.startsWith("'")) type = { variable: tokens[at++] };
    for (;;) {
      if (tokens[at] === "[") {
        at++;
        for (const length of some(size, ",", "]").reverse()) type = { array: type, size: length };
      } else if (/^[\p{L}_]/u.test(tokens[at] ?? "") && tokens[at] !== "with") {
        const name = tokens[at++];
        type = { name: SAME[name] ?? name, args: args ?? (type ? [type] : []) };
        args = null;
      } else break;
    }
    if (!type) throw new Error("a type is missing");
    return type;
  };
  const type = arrow(), classes = new Map(), relations = [];
  if (at < tokens.length && tokens[at] !== "with") throw new Error("this is no type");
  for (const part of tokens.slice(at + 1).join(" ").split(" , ")) {
    const names = part.match(/'\w+/g) ?? [], kind = part.match(/: (\w+)/)?.[1];
    if (kind) for (const name of names) classes.set(name, [...(classes.get(name) ?? []), kind]);
    else if (names.length) relations.push({ kind: part.match(/lift|convert|fits|\*\*|@|\+\s*\+/)?.[0], names });
  }
  return { type, classes, relations };
}

function uncurried(type) {
  const given = [];
  for (; type.fn; [, type] = type.fn) given.push(type.fn[0]);
  return [given, type];
}

// ---- matching

const key = (type) => JSON.stringify(type);
const inside = (type) => (type?.array ? inside(type.array) : type);
const rank = (type) => (type?.array ? 1 + rank(type.array) : 0);
const inClass = (type, kind) => ({
  num: () => NUMBERS.test(inside(type).name), real: () => REALS.test(inside(type).name),
  integer: () => NUMBERS.test(inside(type).name) && !REALS.test(inside(type).name),
  scalar: () => !type.array, data: () => !inside(type).fn, diff: () => !inside(type).fn,
})[kind]?.() ?? true;

// Whether a relation between the types that were chosen holds: `lift 'a 'b = 'c`, `'a fits 'b`, `'a @ 'b = 'c` ...
function holds({ kind, names }, chosen) {
  const types = names.map((name) => chosen.get(name)), ranks = types.map(rank);
  if (kind === "lift") return ranks.pop() === Math.max(...ranks);
  if (kind === "fits") return ranks[0] <= ranks[1] && inClass(types[0], "num");
  if (kind === "@") return types.slice(0, 2).every((type) => inClass(type, "num") && rank(type));
  if (kind === "**" || kind === "convert") return types.every((type) => inClass(type, "num"));
  return types.every((type) => key(type) === key(types[0]));
}

// The cost of the choices that make a declared type the one that is asked for; null if there are none.
function cost({ type, classes, relations }, wanted) {
  const [own, result] = uncurried(type), [asked, end] = uncurried(wanted);
  if (own.length !== asked.length) return null;
  for (const order of asked.length === 2 ? [asked, [asked[1], asked[0]]] : [asked]) {
    const chosen = new Map();
    let spent = order === asked ? 0 : 10;
    const choose = (name, value) => {
      if (chosen.has(name)) return key(chosen.get(name)) === key(value);
      chosen.set(name, value);
      spent += classes.has(name) ? 1 : 1.5;
      return (classes.get(name) ?? []).every((kind) => inClass(value, kind));
    };
    const fitsSize = (a, b) => {
      if (a === b || a === "?" || b === "?") { spent += a === b ? 0 : 0.5; return true; }
      if (!/^[^\d+*]+$/.test(a)) { spent += 1; return !/^\d+$/.test(a) || !/^\d+$/.test(b); }
      if (!chosen.has(`[${a}`)) { chosen.set(`[${a}`, b); spent += 0.1; }
      return chosen.get(`[${a}`) === b;
    };
    const fits = (a, b) => {
      if (a.variable) return choose(a.variable, b);
      if (a.fn) return !!b.fn && a.fn.every((part, i) => fits(part, b.fn[i]));
      if (a.tuple) return b.tuple?.length === a.tuple.length && a.tuple.every((part, i) => fits(part, b.tuple[i]));
      if (a.array) return !!b.array && fitsSize(a.size, b.size) && fits(a.array, b.array);
      const last = a.name.split(".").pop();
      return (b.name === a.name || b.name === last)
        && (!b.args.length || (a.args.length === b.args.length && a.args.every((part, i) => fits(part, b.args[i]))));
    };
    if (own.every((part, i) => fits(part, order[i])) && fits(result, end)
      && relations.every((relation) => holds(relation, chosen))) return spent;
  }
  return null;
}

// ---- finding

function attempt(text) {
  try { return parse(text); } catch { return null; }
}

const MISSING = 10;  // the cost of a word that is not found

function byWords(entry, query) {
  const name = entry.name.toLowerCase(), asked = query.toLowerCase(), words = asked.split(/\s+/);
  const text = `${name} ${entry.doc} ${entry.type}`.toLowerCase();
  if (entry.also?.includes(query) || entry.also?.includes(query.split(".").pop())) return 0;
  const missing = words.filter((word) => !text.includes(word)).length;
  if (missing === words.length) return null;
  const last = name.split(".").pop();
  return missing * MISSING + (words.includes(last) ? 0 : words.some((word) => name.includes(word)) ? 1 : 2);
}

function find(entries, query) {
  const asked = query.includes("->") ? attempt(query)?.type : null;
  const ranked = entries.map((entry) => {
    if (!asked) return [byWords(entry, query), entry];
    entry.parsed ??= attempt(entry.type);
    return [entry.parsed ? cost(entry.parsed, asked) : null, entry];
  });
  const found = ranked.filter(([score]) => score !== null);
  const fewest = Math.floor(Math.min(...found.map(([score]) => score)) / MISSING);
  return found.filter(([score]) => asked || Math.floor(score / MISSING) === fewest)
    .sort(([a, x], [b, y]) => a - b || x.name.length - y.name.length || x.name.localeCompare(y.name))
    .slice(0, 60).map(([, entry]) => entry);
}

// Names that a typing mistake may have meant: one letter in three or four may be wrong.
function near(entries, query) {
  const asked = query.toLowerCase(), most = Math.max(1, Math.floor(asked.length / 3.5));
  return entries.map((entry) => {
    const name = entry.name.toLowerCase();
    return [Math.min(distance(name, asked), distance(name.split(".").pop(), asked)), entry];
  }).filter(([wrong]) => wrong <= most).sort(([a], [b]) => a - b).slice(0, 8).map(([, entry]) => entry);
}

// How something is written here that has this name elsewhere, such as `np.concatenate` or `moving average`; "" if no
// other system is known to have it.
function said(elsewhere, query) {
  const bare = (name) => name.toLowerCase().replace(/[_']/g, "");
  const stem = (name) => (name.length > 3 && /[^s]s$/.test(name) ? name.slice(0, -1) : name);
  const whole = query.trim().replace(/[\s-]+/g, "_");
  return [whole, stem(whole), whole.split(".").pop()].map((name) => elsewhere[name] ?? elsewhere[bare(name)]).find(Boolean) ?? "";
}

// What the page shows for a query.  A name of other systems comes with how it is written here, and without what has its
// letters somewhere in a text.
function answer(entries, elsewhere, query) {
  const written = said(elsewhere, query), exact = find(entries, query);
  const start = query.split(".").pop().toLowerCase();
  const meant = ({ name, also }) => also?.includes(query) || name.split(".").pop().toLowerCase().startsWith(start);
  if (written) return { heading: written, found: exact.filter(meant) };
  if (exact.length) return { heading: "", found: exact };
  const found = near(entries, query);
  return { heading: found.length ? "nothing found with these words; did you mean:" : "nothing found", found };
}

function begin(entries, elsewhere) {
  const field = document.getElementById("finder"), list = document.getElementById("found");
  const show = () => {
    const query = field.value.trim();
    const { heading, found } = query ? answer(entries, elsewhere, query) : { heading: "", found: [] };
    const rows = found.map((entry) => {
      const row = document.createElement("li"), link = document.createElement("a");
      const code = document.createElement("code"), doc = document.createElement("span");
      link.href = entry.page; link.textContent = entry.name;
      code.textContent = entry.type; doc.textContent = entry.doc;
      row.append(link, " ", code, document.createElement("br"), doc);
      return row;
    });
    const first = document.createElement("li");
    first.textContent = heading;
    list.replaceChildren(...(heading ? [first] : []), ...rows);
  };
  field.addEventListener("input", show);
  const asked = new URLSearchParams(location.search).get("find");
  if (asked) { field.value = asked; show(); }
}
