"""A field on a page that finds what modules offer, by name, by word, or by type.

`list -> int` finds every type that contains this, whatever the names of its variables and sizes are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from dplc.tools.doc.contents import Page

SCRIPT = r"""
(() => {
  const field = document.getElementById("finder"), list = document.getElementById("found");
  const plain = (type) => {
    const names = new Map();
    const short = type.replace(/ with .*/, "").replace(/'\w+|(?<=[\[,(] ?)[a-z]\w?(?=[\],)])/g, (name) => {
      if (!names.has(name)) names.set(name, (name[0] == "'" ? "'" : "") + String.fromCharCode(97 + names.size));
      return names.get(name);
    });
    return short.replace(/\s+/g, " ").trim();
  };
  const rank = (entry, words, type) => {
    if (type) return plain(entry.type).includes(type) ? 1 + plain(entry.type).length / 1e3 : 0;
    const name = entry.name.toLowerCase(), text = (name + " " + entry.doc + " " + entry.type).toLowerCase();
    if (!words.every((word) => text.includes(word))) return 0;
    return words.some((word) => name.split(".").pop() == word) ? 1 : words.some((w) => name.includes(w)) ? 2 : 3;
  };
  const show = () => {
    const query = field.value.trim(), type = query.includes("->") ? plain(query) : "";
    const words = query.toLowerCase().split(/\s+/);
    const found = !query ? [] : ENTRIES.map((entry) => [rank(entry, words, type), entry]).filter(([r]) => r)
      .sort(([a, x], [b, y]) => a - b || x.name.localeCompare(y.name)).slice(0, 60);
    list.replaceChildren(...found.map(([, entry]) => {
      const row = document.createElement("li"), link = document.createElement("a");
      const code = document.createElement("code"), doc = document.createElement("span");
      link.href = entry.page; link.textContent = entry.name;
      code.textContent = entry.type; doc.textContent = entry.doc;
      row.append(link, " ", code, document.createElement("br"), doc);
      return row;
    }));
    if (query && !found.length) list.textContent = "nothing found";
  };
  field.addEventListener("input", show);
  const asked = new URLSearchParams(location.search).get("find");
  if (asked) { field.value = asked; show(); }
})();
"""


def finder(pages: Sequence[Page]) -> str:
    """The HTML of the field, with the entries of these pages."""
    entries = [
        {
            "name": f"{page.name}.{entry.name}",
            "type": entry.declared.partition(" : ")[2] or entry.declared,
            "doc": entry.doc.split("\n")[0],
            "page": f"{page.name}.html#{entry.anchor}",
        }
        for page in pages
        for section in page.sections
        for entry in section.entries
    ]
    known = json.dumps(entries, ensure_ascii=False).replace("</", "<\\/")
    label = "a name, a word, or a type such as  &#39;a list -> int"
    return (
        f'<input id="finder" type="search" autocomplete="off" aria-label="find" placeholder="{label}">'
        f'<ul id="found" aria-live="polite"></ul><script>const ENTRIES = {known};{SCRIPT}</script>'
    )
