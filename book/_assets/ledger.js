"use strict";
// The filters of the ledger: chips and words hide rows; the address keeps what was chosen.
(function () {
  const form = document.getElementById("filters");
  const rows = [...document.querySelectorAll("table.ledger tbody tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const chips = [...form.querySelectorAll("button[data-key]")];
  const fields = [...form.querySelectorAll("select, input")];

  function read(search) {
    const wanted = new URLSearchParams(search);
    for (const chip of chips) {
      const on = wanted.getAll(chip.dataset.key).includes(chip.dataset.value);
      chip.setAttribute("aria-pressed", String(on));
    }
    for (const field of fields) field.value = wanted.get(field.dataset.key) || "";
  }

  function chosen() {
    const wanted = new URLSearchParams();
    for (const chip of chips)
      if (chip.getAttribute("aria-pressed") === "true")
        wanted.append(chip.dataset.key, chip.dataset.value);
    for (const field of fields) if (field.value) wanted.set(field.dataset.key, field.value);
    return wanted;
  }

  // Sharpest first: all rows in the first table, those that resolve nothing last.
  const homes = rows.map((row) => row.parentElement);
  const width = (row) => Number((row.className.match(/resolves-([\d.e-]+)/) || [0, Infinity])[1]);
  let sorted = false;
  function sort(order) {
    if (!!order === sorted) return;
    sorted = !!order;
    const ranked = sorted ? [...rows].sort((a, b) => width(a) - width(b)) : rows;
    for (const row of ranked) (sorted ? homes[0] : homes[rows.indexOf(row)]).append(row);
  }

  function apply(keep) {
    const wanted = chosen();
    const words = (wanted.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const keys = [...new Set(wanted.keys())].filter((key) => key !== "q" && key !== "order");
    sort(wanted.get("order"));
    let shown = 0;
    rows.forEach((row, i) => {
      const fits = words.every((word) => texts[i].includes(word)) && keys.every((key) =>
        wanted.getAll(key).some((value) => row.classList.contains(`of-${key}-${value}`)));
      row.hidden = !fits;
      shown += fits;
    });
    for (const table of document.querySelectorAll("table.ledger"))
      table.closest("section").hidden = !table.querySelector("tbody tr:not([hidden])");
    form.querySelector("[role=status]").textContent = `${shown} of ${rows.length} claims`;
    if (keep) return;
    const query = wanted.toString();
    try {
      history.replaceState(null, "", location.pathname + (query && `?${query}`) + location.hash);
    } catch (error) { /* a page from disk may refuse it */ }
  }

  form.addEventListener("click", (event) => {
    const chip = event.target.closest("button[data-key]");
    if (!chip) return;
    chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
    apply();
  });
  form.addEventListener("input", () => apply());
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => { event.preventDefault(); read(""); apply(); });
  // The counts above are the same filters in one click.
  for (const link of document.querySelectorAll(".verdict-counts a"))
    link.addEventListener("click", (event) => {
      event.preventDefault();
      read(link.search);
      apply();
      form.scrollIntoView();
    });
  // A link to a claim, from a box or the list of those that fail, shows it whatever is chosen.
  function reveal() {
    const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!row || !row.hidden) return;
    read("");
    apply();
    row.scrollIntoView();
  }
  window.addEventListener("hashchange", reveal);
  form.hidden = false;
  read(location.search);
  apply(true);
  if (location.hash) {
    reveal();
    const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (place) place.scrollIntoView();
  }
})();
