// A search that finds nothing offers the words of the book that a typing mistake may have meant (`near.js`).
const asked = new URLSearchParams(location.search).get("q")?.trim().toLowerCase();

function offer() {
  const words = new Set(Object.keys(Search._index.alltitles).flatMap((title) => title.toLowerCase().match(/[\p{L}_]{4,}/gu) ?? []));
  for (const word of Object.keys(Search._index.terms)) if (/^\p{L}{4,}$/u.test(word)) words.add(word);
  const near = [...words].map((word) => [distance(word, asked), word])
    .filter(([wrong, word]) => wrong <= Math.max(1, Math.floor(word.length / 3.5))).sort(([a], [b]) => a - b).slice(0, 5);
  if (!near.length) return;
  const line = document.createElement("p");
  line.append("Did you mean: ");
  for (const [, word] of near) {
    const link = document.createElement("a");
    link.href = `?q=${encodeURIComponent(word)}`;
    link.textContent = word;
    line.append(link, " ");
  }
  document.getElementById("search-results").append(line);
}

if (asked && document.getElementById("search-results")) {
  new MutationObserver((_, observer) => {
    if (!/did not match/.test(document.getElementById("search-results").textContent)) return;
    observer.disconnect();
    offer();
  }).observe(document.getElementById("search-results"), { childList: true, subtree: true, characterData: true });
}
