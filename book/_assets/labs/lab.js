// <feature-lab>: sliders, a run of the real dynamics in a worker, curves, a sentence, a map.
// One component for every lab: the page's JSON says what to show (CONTRIBUTING.md has the fields).
"use strict";
(function () {
  if (!window.FeatureLabEngine) return; // its script was lost: the figure stays
  const html = (text) => String(text).replace(/[&<>"]/g, (c) => "&#" + c.charCodeAt(0) + ";");
  const clip = (x, lo, hi) => Math.min(Math.max(x, lo), hi);
  const { format, say, ends } = FeatureLabEngine();

  // Positions of a native range input (whole numbers) and the values they stand for.
  function axis(s) {
    const log = s.scale === "log", count = s.positions || (log ? 100 : Math.round((s.max - s.min) / s.step));
    return {
      count,
      value(p) {
        const raw = log ? s.min * (s.max / s.min) ** (p / count) : s.min + p * s.step;
        const v = log ? Number(raw.toPrecision(3)) : Number(raw.toFixed(9));
        return clip(s.integer ? Math.round(v) : v, s.min, s.max);
      },
      position(v) {
        return log ? (count * Math.log(v / s.min)) / Math.log(s.max / s.min) : (v - s.min) / s.step;
      },
    };
  }

  function ticks(lo, hi, log, room) {
    const out = [];
    if (log) {
      const from = Math.floor(Math.log10(lo)), to = Math.ceil(Math.log10(hi));
      for (const within of [[1, 2, 5], [1, 3], [1]]) {
        out.length = 0;
        const step = within.length > 1 ? 1 : Math.ceil((to - from) / room);
        for (let e = from; e <= to; e += step)
          out.push(...within.map((k) => Number((k * 10 ** e).toPrecision(1))).filter((v) => v >= lo && v <= hi));
        if (out.length <= room + 2) break;
      }
      return out;
    }
    const rough = (hi - lo) / room, unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * [1, 2, 5, 10].find((k) => k * unit >= rough);
    for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi * (1 + 1e-9); k++) out.push(Number((k * step).toPrecision(12)));
    return out;
  }

  const DASH = { theory: "2 4", dashed: "8 4", solid: "" };
  const stroke = (c) => `stroke="var(--${c.color || "a"})" fill="none" stroke-dasharray="${DASH[c.line || "solid"]}"`;

  // A frame with ticks; x and y map values to pixels.
  function frame(width, height, X, Y) {
    const left = 52, right = 10, top = 10, bottom = 38;
    const scale = (A, from, to) => (v) => {
      const f = A.log ? Math.log(v / A.lo) / Math.log(A.hi / A.lo) : (v - A.lo) / (A.hi - A.lo);
      return from + (to - from) * f;
    };
    const x = scale(X, left, width - right), y = scale(Y, height - bottom, top);
    let svg = "";
    for (const v of ticks(Y.lo, Y.hi, Y.log, 5))
      svg += `<path d="M${left} ${y(v).toFixed(1)}H${width - right}" stroke="var(--line)"/>` +
        `<text x="${left - 6}" y="${(y(v) + 4).toFixed(1)}" text-anchor="end">${format(v, 2)}</text>`;
    for (const v of ticks(X.lo, X.hi, X.log, Math.max(2, Math.floor(width / 80))))
      svg += `<text x="${x(v).toFixed(1)}" y="${height - bottom + 16}" text-anchor="middle">${format(v, 2)}</text>`;
    svg += `<path d="M${left} ${top}V${height - bottom}H${width - right}" stroke="var(--soft)" fill="none"/>` +
      `<text x="${(left + width - right) / 2}" y="${height - 4}" text-anchor="middle">${html(X.label)}</text>`;
    const box = { left, top, width: width - left - right, height: height - top - bottom };
    return { x, y, svg, box };
  }

  function path(times, values, x, y, log) {
    let d = "", pen = false;
    values.forEach((v, k) => {
      const fine = Number.isFinite(v) && (!log || v > 0);
      if (fine) d += (pen ? "L" : "M") + x(times[k]).toFixed(1) + " " + clip(y(v), -9999, 9999).toFixed(1);
      pen = fine;
    });
    return d;
  }

  // The lines of a curve: one, or one for each entry of a vector, perhaps of one group only.
  function lines(curve, curves) {
    const all = curves[curve.key];
    if (!all) return [];
    if (!Array.isArray(all[0])) return [all];
    const group = curve.where && curves[curve.where[0]][0];
    return all[0].map((_, i) => i).filter((i) => !group || group[i] === curve.where[1])
      .map((i) => all.map((v) => v[i]));
  }

  function drawPlot(plot, result, width, id) {
    const height = Math.round(clip(width * 0.62, 190, 270)), log = plot.scale === "log";
    const drawn = plot.curves.map((c) => lines(c, result.curves));
    const seen = drawn.flatMap((ls, k) => (plot.curves[k].line === "theory" ? [] : ls.flat()))
      .filter((v) => Number.isFinite(v) && (!log || v > 0));
    let lo = Math.min(...seen, Infinity), hi = Math.max(...seen, -Infinity);
    if (!seen.length) [lo, hi] = [0.1, 1];
    if (!log) [lo, hi] = [Math.min(lo, 0), hi + 0.05 * (hi - Math.min(lo, 0))];
    for (const level of plot.levels || []) [lo, hi] = [Math.min(lo, level.at), Math.max(hi, level.at)];
    if (plot.min !== undefined) lo = plot.min;
    if (plot.max !== undefined) hi = plot.max;
    if (!(hi > lo)) [lo, hi] = log ? [lo / 2, hi * 2] : [lo, lo + 1];
    const last = result.times[result.times.length - 1] || 1;
    const f = frame(width, height, { lo: 0, hi: last, label: "step" }, { lo, hi, log });
    let svg = f.svg + `<clipPath id="${id}"><rect x="${f.box.left}" y="${f.box.top - 1}" width="${f.box.width}" height="${f.box.height + 2}"/></clipPath><g clip-path="url(#${id})">`;
    for (const level of plot.levels || []) {
      const y = f.y(level.at).toFixed(1), right = f.box.left + f.box.width;
      svg += `<path d="M${f.box.left} ${y}H${right}" stroke="var(--ink)" stroke-dasharray="1 5" stroke-width="1.5"/>` +
        `<text x="${right - 4}" y="${y - 5}" text-anchor="end">${html(level.label)}</text>`;
    }
    plot.curves.forEach((c, k) => {
      const thin = drawn[k].length > 1;
      for (const l of drawn[k])
        svg += `<path d="${path(result.times, l, f.x, f.y, log)}" ${stroke(c)} stroke-width="${thin ? 1 : 2.2}" opacity="${thin ? 0.6 : 1}"/>`;
    });
    svg += "</g>";
    const items = plot.curves.map((c, k) => {
      const l = drawn[k], end = l.length === 1 && c.line !== "theory" ? l[0][l[0].length - 1] : undefined;
      return l.length ? { text: c.label, end, swatch: `<svg width="26" height="8" aria-hidden="true"><path d="M0 4H26" ${stroke(c)} stroke-width="2.4"/></svg>` } : null;
    }).filter((c) => c && !(Number.isNaN(c.end)));
    const legend = items.map((c) => `<li>${c.swatch}${html(c.text)}${c.end === undefined ? "" : ` <b>${format(c.end)}</b>`}</li>`).join("");
    const told = items.filter((c) => c.end !== undefined).map((c) => `${c.text} ends at ${format(c.end)}`).join(", ");
    return `<h4>${html(plot.title)}</h4><ul>${legend}</ul><svg width="${width}" height="${height}" role="img" aria-label="${html(plot.title + (told ? ": " + told : ""))}">${svg}</svg>`;
  }

  // The predicted quantity is a product of powers of the parameters, so three runs of no steps
  // give its logarithm, u + bx log x + by log y, and with it the boundary y(x).
  const probesOf = ({ x, y }, p) => [[1, 1], [2, 1], [1, 2]].map(([i, j]) =>
    ({ [x.name]: i * p[x.name], [y.name]: j * p[y.name], steps: 0 }));

  function boundaryOf({ x, y, boundary }, p, found) {
    const u = found.map((r) => Math.log(r.values[boundary.key] / boundary.at));
    const bx = (u[1] - u[0]) / Math.LN2, by = (u[2] - u[0]) / Math.LN2;
    return (v) => p[y.name] * Math.exp(-(u[0] + bx * Math.log(v / p[x.name])) / by);
  }

  // The edge number k (it may lie between two) of the cells of an axis.
  const edge = (A, k) => A.scale === "log" ? A.min * (A.max / A.min) ** (k / A.cells) : A.min + (k / A.cells) * (A.max - A.min);

  // Cells from coarse to fine; y runs over a factor A.around on both sides of the boundary.
  function cellsOf(phase, boundary) {
    const middle = boundary(edge(phase.x, phase.x.cells / 2));
    const axes = { x: phase.x, y: { ...phase.y, scale: "log", min: middle / phase.y.around, max: middle * phase.y.around } };
    const at = (A) => Array.from({ length: A.cells }, (_, k) => (A.integer ? Math.round : Number)(edge(A, k + 0.5)));
    const xs = at(axes.x), ys = at(axes.y), cells = [];
    for (let gap = 4; gap >= 1; gap /= 2)
      ys.forEach((y, j) => xs.forEach((x, i) => {
        if (i % gap === 0 && j % gap === 0 && (gap === 4 || i % (2 * gap) || j % (2 * gap)))
          cells.push({ i, j, set: { [phase.x.name]: x, [phase.y.name]: y } });
      }));
    return { axes, cells };
  }

  function drawPhase(phase, params, { axes, cells, boundary, found }, width, id) {
    const height = Math.round(clip(width * 0.62, 190, 270));
    const A = (S) => ({ lo: S.min, hi: S.max, log: S.scale === "log", label: S.label });
    const f = frame(width, height, A(axes.x), A(axes.y));
    let svg = "", d = "";
    found.forEach((r, k) => {
      const { i, j } = cells[k], v = r.curves[phase.show][0];
      const x0 = f.x(edge(axes.x, i)), x1 = f.x(edge(axes.x, i + 1)), y0 = f.y(edge(axes.y, j + 1)), y1 = f.y(edge(axes.y, j));
      svg += `<rect x="${x0.toFixed(1)}" y="${y0.toFixed(1)}" width="${(x1 - x0 + 0.3).toFixed(1)}" height="${(y1 - y0 + 0.3).toFixed(1)}" fill="var(--b)" opacity="${clip(v / phase.top, 0.02, 1).toFixed(3)}"/>`;
    });
    for (let k = 0; k <= 40; k++) {
      const x = edge(axes.x, (k / 40) * axes.x.cells);
      d += (k ? "L" : "M") + f.x(x).toFixed(1) + " " + clip(f.y(boundary(x)), -9999, 9999).toFixed(1);
    }
    svg += `<clipPath id="${id}"><rect x="${f.box.left}" y="${f.box.top}" width="${f.box.width}" height="${f.box.height}"/></clipPath>` +
      `<path clip-path="url(#${id})" d="${d}" stroke="var(--ink)" fill="none" stroke-width="2" stroke-dasharray="2 4"/>`;
    const x = f.x(clip(params[phase.x.name], axes.x.min, axes.x.max)), y = f.y(clip(params[phase.y.name], axes.y.min, axes.y.max));
    svg += `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="7" fill="var(--back)" stroke="var(--ink)" stroke-width="3"/>`;
    const mark = (s) => `<svg width="22" height="14" aria-hidden="true">${s}</svg>`;
    const legend = [[mark('<rect width="22" height="14" fill="var(--b)" opacity=".08"/>'), "0"],
      [mark('<rect width="22" height="14" fill="var(--b)"/>'), format(phase.top)],
      [mark('<path d="M0 7H22" stroke="var(--ink)" stroke-width="2" stroke-dasharray="2 4"/>'), phase.boundary.label],
      [mark('<circle cx="11" cy="7" r="5" fill="var(--back)" stroke="var(--ink)" stroke-width="2.5"/>'), "you are here"]];
    const told = `${phase.title}: ${found.length} of ${cells.length} cells done`;
    return `<h4>${html(phase.title)}</h4><ul>${legend.map(([m, t]) => `<li>${m}${html(t)}</li>`).join("")}</ul>` +
      `<svg width="${width}" height="${height}" role="img" aria-label="${html(told)}">${f.svg.replace(/<path d="M\d+ [\d.]+H.*?>/g, "")}${svg}` +
      `<text transform="translate(12 ${f.box.top + f.box.height / 2}) rotate(-90)" text-anchor="middle">${html(phase.y.label)}</text></svg>`;
  }

  // The engine in a worker made from its own source (file:// allows no other), or here in slices.
  function makeRunner(name, listen) {
    const { spec, define } = window.FeatureLab.models[name];
    const here = () => {
      const runner = FeatureLabEngine().runner(listen, 8);
      runner.define(name, spec, define);
      return { where: "page", call: (what, ...args) => runner[what](...args), close() { runner.stop("run"); runner.stop("cells"); } };
    };
    try {
      const source = `"use strict";const r=(${FeatureLabEngine})().runner((m)=>postMessage(m),25);` +
        `r.define(${JSON.stringify(name)},${JSON.stringify(spec)},${define});onmessage=(e)=>r[e.data[0]](...e.data.slice(1));`;
      const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
      const worker = new Worker(url), self = { where: "worker" };
      const jobs = {};
      worker.onmessage = (e) => listen(e.data);
      worker.onerror = (e) => { // a worker that does not start: do the jobs here
        e.preventDefault();
        worker.terminate();
        Object.assign(self, here());
        Object.values(jobs).forEach((job) => self.call("start", job));
      };
      self.call = (what, arg) => {
        if (what === "start") jobs[arg.kind] = arg;
        else delete jobs[arg];
        worker.postMessage([what, arg]);
      };
      self.close = () => { worker.terminate(); URL.revokeObjectURL(url); };
      return self;
    } catch {
      return here();
    }
  }

  class FeatureLabElement extends HTMLElement {
    start() {
      if (this.shadowRoot) return;
      this.config = JSON.parse(this.querySelector('script[type="application/json"]').textContent);
      this.sliders = this.config.sliders.map((s) => ({ ...s, axis: axis({ step: 1, ...s }) }));
      this.params = { ...this.config.params, ...this.linked() };
      this.run = { id: 0, done: false, result: null };
      this.map = { id: 0, found: [] };
      this.build();
      this.runner = makeRunner(this.getAttribute("model"), (m) => this.hear(m));
      this.dark();
      this.watch();
      this.train();
    }

    build() {
      const c = this.config, root = this.attachShadow({ mode: "open" });
      const slider = (s) => `<label><span>${html(s.label)}</span><input type="range" name="${s.name}" min="0" max="${s.axis.count}" step="1"><output aria-hidden="true"></output></label>`;
      const rest = this.sliders.slice(3), open = rest.some((x) => this.params[x.name] !== c.params[x.name]);
      root.innerHTML = `<link rel="stylesheet" href="${window.FeatureLab.file("lab.css")}"><section class="lab" aria-label="${html(c.title)}" hidden><h3>${html(c.title)}</h3>
<div class="plots" style="--least: ${(c.plots.length + !!c.phase) % 3 ? 310 : 280}px">${c.phase ? '<div class="map"></div>' : ""}${c.plots.map(() => '<div class="plot"></div>').join("")}</div>
<p class="says" role="status"></p>
<div class="controls">${this.sliders.slice(0, 3).map(slider).join("")}</div>
${rest.length ? `<details class="more"${open ? " open" : ""}><summary>More: ${html(rest.map((x) => x.label).join(", "))}</summary><div class="rest">${rest.map(slider).join("")}</div></details>` : ""}
<div class="bar"><button name="seed">New seed</button><button name="reset">Reset</button><button name="link">Copy link</button><button name="csv">Download CSV</button><p class="note"></p></div>
<details class="values"><summary>Table of values</summary><div class="scroll" tabindex="0" role="region" aria-label="Table of values"></div></details>
</section><slot></slot>`;
      this.$ = (q) => root.querySelector(q);
      this.boxes = [...root.querySelectorAll(".plot")];
      const link = this.$("link");
      link.onload = link.onerror = () => { this.$(".lab").hidden = false; };
      this.$(".lab").addEventListener("input", (e) => {
        const s = this.sliders.find((x) => x.name === e.target.name);
        if (!s) return;
        this.params[s.name] = s.axis.value(Number(e.target.value));
        this.show();
        this.train();
      });
      this.$("[name=seed]").onclick = () => { this.params.seed++; this.set(); };
      this.$("[name=reset]").onclick = () => { this.params = { ...c.params }; this.set(); };
      this.$("[name=link]").onclick = () => this.copy();
      this.$("[name=csv]").onclick = () => this.csv();
      this.$(".values").ontoggle = () => this.table();
      this.place();
    }

    place() {
      for (const s of this.sliders) this.$(`[name=${s.name}]`).value = Math.round(s.axis.position(this.params[s.name]));
      this.show();
    }

    set() {
      this.place();
      this.train();
    }

    show() {
      for (const s of this.sliders) {
        const input = this.$(`[name=${s.name}]`), text = format(this.params[s.name]) + (s.unit || "");
        input.nextElementSibling.textContent = text;
        input.setAttribute("aria-valuetext", text);
      }
    }

    watch() {
      this.resize = new ResizeObserver(() => this.draw());
      this.resize.observe(this.$(".plots"));
      const theme = () => this.dark();
      this.theme = new MutationObserver(theme);
      this.theme.observe(document.documentElement, { attributeFilter: ["data-theme", "data-mode"] });
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
    }

    disconnectedCallback() {
      if (!this.runner) return;
      this.runner.close();
      this.resize.disconnect();
      this.theme.disconnect();
    }

    dark() {
      const theme = document.documentElement.dataset.theme;
      const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      this.toggleAttribute("dark", dark);
    }

    train() {
      this.run = { id: this.run.id + 1, done: false, result: this.run.result, params: { ...this.params } };
      this.runner.call("start", { kind: "run", id: this.run.id, model: this.getAttribute("model"), params: this.run.params });
      this.$(".lab").setAttribute("aria-busy", "true");
      const phase = this.config.phase;
      if (!phase) return;
      const key = JSON.stringify({ ...this.params, [phase.x.name]: 0, [phase.y.name]: 0 });
      if (key === this.map.key) return;
      this.map = { key, id: this.map.id + 1, params: { ...this.params }, probes: [], found: [] };
      this.runner.call("stop", "cells");
      clearTimeout(this.mapTimer);
      this.mapTimer = setTimeout(() => this.fill(probesOf(phase, this.map.params)), 300);
    }

    fill(cells) {
      this.runner.call("start", { kind: "cells", id: this.map.id, model: this.getAttribute("model"), params: this.map.params, cells });
    }

    // A cell of the map is done, or a probe: after the third the cells are known.
    hearCell(m) {
      const { map, config: { phase } } = this;
      if (m.id !== map.id) return;
      if (map.cells) map.found[m.at] = m.result;
      else if (map.probes.push(m.result) === 3) {
        map.boundary = boundaryOf(phase, map.params, map.probes);
        Object.assign(map, cellsOf(phase, map.boundary));
        this.fill(map.cells.map((c) => c.set));
      }
      this.drawMap();
    }

    hear(m) {
      if (m.error) {
        this.$(".note").textContent = "This run failed: " + m.error;
        return;
      }
      if (m.kind === "cells") {
        this.hearCell(m);
        return;
      }
      if (m.id !== this.run.id) return;
      this.run.result = m.result;
      this.run.done = m.done;
      this.draw();
      if (!m.done) {
        this.$(".note").textContent = `Training: ${Math.round(100 * m.share)} %`;
        return;
      }
      this.run.ms = m.ms;
      this.$(".lab").setAttribute("aria-busy", "false");
      this.$(".note").textContent = `Seed ${this.params.seed}; trained in your browser in ${format(Math.round(m.ms))} ms.`;
      this.table();
      clearTimeout(this.speech);
      this.speech = setTimeout(() => (this.$(".says").textContent = this.sentence()), this.spoken ? 400 : 0);
      this.spoken = true;
    }

    sentence() {
      return say(this.config.sentence, ends(this.run.result, this.run.params));
    }

    draw() {
      if (!this.run.result || this.$(".lab").hidden) return;
      this.config.plots.forEach((p, k) => {
        const box = this.boxes[k];
        box.innerHTML = drawPlot(p, this.run.result, Math.max(240, Math.floor(box.clientWidth)), "clip" + k);
      });
      this.drawMap();
      if (!this.landed) window.FeatureLab.land(this);
      this.landed = true;
    }

    drawMap() {
      if (!this.map.cells) return;
      const box = this.$(".map");
      box.innerHTML = drawPhase(this.config.phase, this.params, this.map, Math.max(240, Math.floor(box.clientWidth)), "clipmap");
    }

    columns() {
      const { times, curves } = this.run.result, out = [["step", times]];
      for (const k in curves) {
        if (!Array.isArray(curves[k][0])) out.push([k, curves[k]]);
        else curves[k][0].forEach((_, i) => out.push([`${k}_${i + 1}`, curves[k].map((v) => v[i])]));
      }
      return out;
    }

    table() {
      if (!this.$(".values").open || !this.run.result) return;
      const { times, curves } = this.run.result;
      const keys = [...new Set(this.config.plots.flatMap((p) => p.curves.map((c) => c.key)))].filter((k) => curves[k] && !Array.isArray(curves[k][0]));
      const label = (k) => this.config.plots.flatMap((p) => p.curves).find((c) => c.key === k).label;
      const rows = times.map((t, i) => `<tr><th scope="row">${t}</th>${keys.map((k) => `<td>${format(curves[k][i])}</td>`).join("")}</tr>`);
      this.$(".scroll").innerHTML = `<table><thead><tr><th scope="col">step</th>${keys.map((k) => `<th scope="col">${html(label(k))}</th>`).join("")}</tr></thead><tbody>${rows.join("")}</tbody></table>`;
    }

    csv() {
      if (!this.run.result) return;
      const columns = this.columns();
      const text = [columns.map((c) => c[0]).join(",")].concat(this.run.result.times.map((_, k) => columns.map((c) => String(c[1][k])).join(","))).join("\n") + "\n";
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
      link.download = `${this.id || "lab"}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    }

    // ?id=n:50,seed:3#id restores the state; what is not a parameter or out of range is left out.
    link() {
      const p = this.params, d = this.config.params;
      const state = Object.keys(p).filter((k) => p[k] !== d[k]).map((k) => `${k}:${p[k]}`).join(",");
      return location.href.replace(/[?#].*$/, "") + (state ? `?${this.id}=${state}` : "") + `#${this.id}`;
    }

    linked() {
      const out = {}, text = new URLSearchParams(location.search).get(this.id) || "";
      for (const part of text.split(",")) {
        const [k, v] = part.split(":"), s = this.sliders.find((x) => x.name === k), value = Number(v);
        if (!v || !Number.isFinite(value)) continue;
        if (s && value >= s.min && value <= s.max) out[k] = s.integer ? Math.round(value) : value;
        else if (k === "seed" && Number.isInteger(value) && value >= 0) out[k] = value;
      }
      return out;
    }

    async copy() {
      const text = this.link(), note = this.$(".note");
      try {
        await navigator.clipboard.writeText(text);
        note.textContent = "Link copied.";
      } catch {
        note.innerHTML = `<input class="copy" readonly aria-label="Link to this state" value="${html(text)}">`;
        note.firstChild.select();
      }
    }

    // What the tests read: the state and the records of the last finished run.
    data() {
      return { model: this.getAttribute("model"), where: this.runner.where, ...this.run, cells: (this.map.cells || []).map((c) => c.set), found: this.map.found };
    }
  }

  customElements.define("feature-lab", FeatureLabElement);
})();
