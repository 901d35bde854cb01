"use strict";
// A box that scrolls sideways can be reached by keyboard, and only while it scrolls.
(function () {
  const watch = new ResizeObserver((seen) => {  // of a part that is not laid out yet, later
    seen.forEach(({ target: box }) => {
      const scrolls = box.scrollWidth > box.clientWidth + 1;
      const what = box.classList.contains("scrolls") ? "formula" : "table";
      const wanted = { tabindex: "0", role: "group", "aria-label": `${what}, scrolls sideways` };
      for (const [name, value] of Object.entries(wanted)) {
        if (scrolls) box.setAttribute(name, value);
        else box.removeAttribute(name);
      }
    });
  });
  function mark() {
    document.querySelectorAll(".scrolls, .pst-scrollable-table-container").forEach((box) => { watch.observe(box); });
  }
  window.addEventListener("load", mark);
  window.addEventListener("resize", mark);
  // Paper is light, shows what is folded away, and cannot load a picture later.
  let before = null;
  window.addEventListener("beforeprint", () => {
    const folded = [...document.querySelectorAll("details:not([open])")];
    before = { theme: document.documentElement.dataset.theme, folded };
    document.documentElement.dataset.theme = "light";
    folded.forEach((box) => { box.open = true; });
    document.querySelectorAll("img").forEach((image) => { image.loading = "eager"; });
  });
  window.addEventListener("afterprint", () => {
    document.documentElement.dataset.theme = before.theme;
    before.folded.forEach((box) => { box.open = false; });
  });
  // The excerpts of the search show a formula once, not also as MathML and LaTeX, and text alone.
  if (typeof Search !== "undefined") {
    const plain = Search.htmlToText;
    Search.htmlToText = (text, anchor) => {
      const page = new DOMParser().parseFromString(text, "text/html");
      const twice = ".katex-mathml, #jb-print-docs-body, .bd-header-article";
      page.querySelectorAll(twice).forEach((twin) => { twin.remove(); });
      return plain(page.documentElement.outerHTML, anchor);
    };
  }
  // A page opened from disk may not read its neighbours: list search hits without excerpts.
  if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
})();
