"use strict";
// A click on a figure, or Enter, shows it as large as the window; Escape or a click closes it.
(function () {
  const box = document.createElement("dialog");
  box.className = "enlarged";
  box.setAttribute("aria-label", "Enlarged figure");
  box.innerHTML = '<button type="button">Close</button><img alt="">';
  box.addEventListener("click", () => { box.close(); });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.enlarge");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (!box.isConnected) document.body.append(box);
    const image = box.querySelector("img");
    image.src = link.href;
    image.alt = link.querySelector("img").alt;
    box.showModal();
  });
})();
