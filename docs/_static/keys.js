// The theme opens its navigation by labels of hidden boxes, which a keyboard does not reach: these become buttons.
// What opens over the page takes the focus; Escape closes it and gives the focus back.
for (const label of document.querySelectorAll("label.nav-overlay-icon, label.toc-overlay-icon, .toctree-checkbox + label")) {
  const box = document.getElementById(label.htmlFor);
  const drawer = document.querySelector({ __navigation: ".sidebar-drawer", __toc: ".toc-drawer" }[box.id] ?? "nothing");
  const tell = () => label.setAttribute("aria-expanded", box.checked);
  label.tabIndex = 0;
  label.setAttribute("role", "button");
  label.setAttribute("aria-label", box.getAttribute("aria-label"));
  label.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    box.click();
    if (box.checked) drawer?.querySelector("a, input:not([type=hidden])").focus();
  });
  drawer?.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !box.checked || !label.checkVisibility()) return;
    box.click();
    label.focus();
  });
  box.addEventListener("change", tell);
  tell();
}

// Headings of the navigation have a level, and what scrolls sideways can be scrolled by keyboard.
for (const caption of document.querySelectorAll(".caption[role=heading]")) caption.setAttribute("aria-level", "2");
const scrolled = () => {
  for (const block of document.querySelectorAll(".highlight pre")) {
    if (block.scrollWidth > block.clientWidth) block.tabIndex = 0; else block.removeAttribute("tabindex");
  }
};
addEventListener("load", scrolled);
addEventListener("resize", scrolled);
