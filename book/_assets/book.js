"use strict";
// A box that scrolls sideways can be reached by keyboard, and only while it scrolls.
(function () {
  const BOXES = ".scrolls, .pst-scrollable-table-container";
  const watch = new ResizeObserver((seen) => {  // of a part that is not laid out yet, later
    new Set(seen.map(({ target }) => target.closest(BOXES))).forEach((box) => {
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
    document.querySelectorAll(BOXES).forEach((box) => {
      [box, ...box.children].forEach((part) => { watch.observe(part); });  // a late font widens what is inside
    });
  }
  window.addEventListener("load", mark);
  window.addEventListener("resize", mark);
  // Two depths: theory with code and claims folded, or all. The link and the browser keep it.
  const folds = [...document.querySelectorAll("article details:not(feature-lab details)")];
  const link = () => new URLSearchParams(location.search).get("depth");
  function stored(value) {  // a page from disk may refuse
    try {
      if (value) localStorage.setItem("depth", value);
      return localStorage.getItem("depth");
    } catch (error) { return value; }
  }
  // A place inside a fold, a claim or a figure, is opened by a link to it.
  function reveal() {
    const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const around = place ? folds.filter((box) => box.contains(place) && !box.open) : [];
    around.forEach((box) => { box.open = true; });
    if (around.length) place.scrollIntoView();
  }
  function show(depth) {
    folds.forEach((box) => { box.open = depth === "all"; });
    document.querySelectorAll(".depth button").forEach((button) => {
      button.setAttribute("aria-pressed", String(button.value === depth));
    });
  }
  const head = document.querySelector(".article-header-buttons");
  if (folds.some((box) => box.matches(".hide, .claim[id]")) && head) {
    const group = document.createElement("div");
    group.className = "depth";
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", "what is shown");
    group.innerHTML = '<button type="button" value="theory" title="Fold code and details">theory</button>' +
      '<button type="button" value="all" title="Unfold code and details">all</button>';
    head.prepend(group);
    group.addEventListener("click", (event) => {
      const depth = event.target.value;
      if (!depth) return;
      // What is in view stays where it is.
      const seen = [...document.querySelectorAll("article :is(p, h2, h3, figure, .claim)")]
        .find((part) => part.getBoundingClientRect().top > 60 && part.offsetParent);
      const before = seen ? seen.getBoundingClientRect().top : 0;
      show(depth);
      if (seen && seen.offsetParent) scrollBy(0, seen.getBoundingClientRect().top - before);
      stored(depth);
      const query = new URLSearchParams(location.search);
      if (depth === "all") query.set("depth", depth);
      else query.delete("depth");
      const search = String(query) && `?${query}`;
      try {
        history.replaceState(history.state, "", location.pathname + search + location.hash);
      } catch (error) { /* a page from disk may refuse it */ }
    });
    const depth = (link() || stored()) === "all" ? "all" : "theory";
    show(depth);
  }
  reveal();
  window.addEventListener("hashchange", reveal);
  // Paper is light, shows the chosen depth and all text, and cannot load a picture later.
  let before = null;
  window.addEventListener("beforeprint", () => {
    const shut = document.querySelector('.depth [value="theory"][aria-pressed="true"]') ? ", .hide, .claim" : "";
    const folded = [...document.querySelectorAll(`details:not([open], feature-lab *${shut})`)];
    before = { theme: document.documentElement.dataset.theme, folded };
    document.documentElement.dataset.theme = "light";
    folded.forEach((box) => { box.open = true; });
    document.querySelectorAll("img").forEach((image) => { image.loading = "eager"; });
  });
  window.addEventListener("afterprint", () => {
    document.documentElement.dataset.theme = before.theme;
    before.folded.forEach((box) => { box.open = false; });
  });
  // The excerpts of the search show a formula once, as MathML has it, and text, not code.
  if (typeof Search !== "undefined") {
    const plain = Search.htmlToText;
    Search.htmlToText = (text, anchor) => {
      const page = new DOMParser().parseFromString(text, "text/html");
      const twice = ".katex-html, annotation, .cell_input, #jb-print-docs-body, .bd-header-article";
      page.querySelectorAll(twice).forEach((twin) => { twin.remove(); });
      return plain(page.documentElement.outerHTML, anchor);
    };
  }
  // A page opened from disk may not read its neighbours: list search hits without excerpts.
  if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
})();
