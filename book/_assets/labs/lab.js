// <feature-lab>: sliders, a run of the real dynamics in a worker, curves, a sentence, a map.
// One component for every lab: the page's JSON says what to show (CONTRIBUTING.md has the fields).
"use strict";
(function () {
  if (!window.FeatureLabEngine) return; // its script was lost: the figure stays
  const html = (text) => String(text).replace(/[&<>"]/g, (c) => "&#" + c.charCodeAt(0) + ";");
  const maths = (text) => html(text).replace(/\^([\w.]*\w)/g, "<sup>$1</sup>");
  const clip = (x, lo, hi) => Math.min(Math.max(x, lo), hi);
  const { format, say, ends, holds } = FeatureLabEngine();

  // The top of a slider is a number, or "2*d^0.5" of another parameter.
  function limit({ max }, params) {
    const [, times, name, power] = String(max).match(/^([\d.]+)\*(\w+)\^([\d.]+)$/) || [];
    return name ? times * params[name] ** power : max;
  }

  // Positions of a native range input (whole numbers) and the values they stand for.
  function axis(slider, params) {
    const s = { step: 1, ...slider, max: limit(slider, params) };
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

  function ticks(lo, hi, log, room, least = 0) {
    const out = [];
    if (log && lo > 0) {
      const from = Math.floor(Math.log10(lo)), to = Math.ceil(Math.log10(hi));
      for (const within of [[1, 2, 5], [1, 3], [1]]) {
        out.length = 0;
        const step = within.length > 1 ? 1 : Math.ceil((to - from) / room);
        for (let e = from; e <= to; e += step)
          out.push(...within.map((k) => Number((k * 10 ** e).toPrecision(1))).filter((v) => v >= lo && v <= hi));
        if (out.length <= room + 2) break;
      }
      return out.length > 1 ? out : ticks(lo, hi, false, room);
    }
    const rough = Math.max((hi - lo) / room, least), unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * [1, 2, 5, 10].find((k) => k * unit >= rough);
    for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi * (1 + 1e-9); k++) out.push(Number((k * step).toPrecision(12)));
    return out;
  }

  const DASH = { theory: "2 4", dashed: "8 4", solid: "" };
  const stroke = (c) => `stroke="var(--${c.color || "a"})" fill="none" stroke-dasharray="${DASH[c.line || "solid"]}"`;

  // A frame with ticks; x and y map values to pixels.
  function frame(width, height, X, Y) {
    const left = 52, right = 10, top = Y.label ? 24 : 10, bottom = 38;
    const scale = (A, from, to) => (v) => {
      const f = A.hi === A.lo ? 0 : A.log ? Math.log(v / A.lo) / Math.log(A.hi / A.lo) : (v - A.lo) / (A.hi - A.lo); // one record so far
      return from + (to - from) * f;
    };
    const x = scale(X, left, width - right), y = scale(Y, height - bottom, top);
    let svg = "", used = -9999;
    for (const v of ticks(Y.lo, Y.hi, Y.log, 5))
      svg += `<path d="M${left} ${y(v).toFixed(1)}H${width - right}" stroke="var(--line)"/>` +
        `<text x="${left - 6}" y="${(y(v) + 4).toFixed(1)}" text-anchor="end">${format(v, 2)}</text>`;
    for (const v of X.bare ? [] : ticks(X.lo, X.hi, X.log, Math.max(2, Math.floor(width / 80)), X.whole)) {
      const text = format(v, 2), half = 3.5 * text.length + 3;
      if (x(v) - half <= used) continue;
      used = x(v) + half;
      svg += `<text x="${x(v).toFixed(1)}" y="${height - bottom + 16}" text-anchor="middle">${text}</text>`;
    }
    svg += `<path d="M${left} ${top}V${height - bottom}H${width - right}" stroke="var(--soft)" fill="none"/>` +
      `<text x="${(left + width - right) / 2}" y="${height - 4}" text-anchor="middle">${html(X.label || "")}</text>`;
    if (Y.label) svg += `<text x="${left}" y="12" text-anchor="middle">${html(Y.label)}</text>`;
    const back = (A, from, to) => (px) => {
      const t = clip((px - from) / (to - from), 0, 1);
      return A.log ? A.lo * (A.hi / A.lo) ** t : A.lo + (A.hi - A.lo) * t;
    };
    const inverse = { x: back(X, left, width - right), y: back(Y, height - bottom, top) };
    const box = { left, top, width: width - left - right, height: height - top - bottom };
    return { x, y, svg, box, inverse };
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

  const tall = (width) => Math.round(clip(width * 0.62, 190, 270));

  // A theory may run away from what it is about: of its line only the beginning must be in view.
  function range(plot, result) {
    const log = plot.scale === "log";
    const seen = plot.curves.flatMap((c) => lines(c, result.curves).flatMap((l) => (c.line === "theory" ? l[0] : l)))
      .filter((v) => Number.isFinite(v) && (!log || v > 0));
    if (!seen.length) seen.push(0.1, 1);
    let lo = Math.min(...seen, log ? Infinity : 0), hi = Math.max(...seen);
    const room = log ? (hi / lo) ** 0.05 : 0.05 * (hi - lo);
    [lo, hi] = log ? [lo / room, hi * room] : [lo, hi + room];
    for (const level of plot.levels || []) [lo, hi] = [Math.min(lo, level.at), Math.max(hi, level.at)];
    const { min = lo, max = hi } = plot;
    return max > min ? [min, max] : log ? [min / 2, max * 2] : [min, min + 1];
  }

  function drawPlot(plot, result, ghost, [lo, hi], width, id, now) {
    const height = tall(width), log = plot.scale === "log";
    const drawn = plot.curves.map((c) => lines(c, result.curves));
    const x = (r) => (plot.x ? r.curves[plot.x.key] : r.times), all = x(result), last = all[all.length - 1] || 1;
    const X = plot.x ? { lo: all[0], label: plot.x.label, log: plot.x.scale } : { lo: 0, label: "step", whole: 1 };
    const f = frame(width, height, { ...X, hi: last }, { lo, hi, log });
    let svg = f.svg + `<clipPath id="${id}"><rect x="${f.box.left}" y="${f.box.top - 1}" width="${f.box.width}" height="${f.box.height + 2}"/></clipPath><g clip-path="url(#${id})">`;
    for (const level of plot.levels || []) {
      const y = f.y(level.at).toFixed(1), right = f.box.left + f.box.width;
      svg += `<path d="M${f.box.left} ${y}H${right}" stroke="var(--ink)" stroke-dasharray="1 5" stroke-width="1.5"/>` +
        `<text x="${right - 4}" y="${y - 5}" text-anchor="end">${html(level.label)}</text>`;
    }
    const at = plot.x && plot.x.mark ? result.curves[plot.x.mark.key][0] : NaN;
    if (at > X.lo && at < last)
      svg += `<path d="M${f.x(at).toFixed(1)} ${f.box.top}v${f.box.height}" stroke="var(--ink)" stroke-dasharray="1 5" stroke-width="1.5"/>` +
        `<text x="${f.x(at)}" y="${f.box.top + 12}" text-anchor="${2 * f.x(at) < width ? "start" : "end"}" dx="${2 * f.x(at) < width ? 5 : -5}">${html(plot.x.mark.label)}</text>`;
    plot.curves.forEach((c, k) => {
      const thin = drawn[k].length > 1, past = ghost && !thin && c.line !== "theory" ? lines(c, ghost.curves) : [];
      for (const l of past)
        svg += `<path class="ghost" d="${path(x(ghost), l, f.x, f.y, log)}" ${stroke(c)}/>`;
      for (const l of drawn[k])
        svg += `<path d="${path(all, l, f.x, f.y, log)}" ${stroke(c)} stroke-width="${thin ? 1 : 2.2}" opacity="${thin ? 0.6 : 1}"/>`;
    });
    svg += "</g>";
    if (now !== undefined) svg += `<path class="now" d="M${f.x(all[now]).toFixed(1)} ${f.box.top}v${f.box.height}"/>`;
    const items = plot.curves.map((c, k) => {
      const l = drawn[k], end = l.length === 1 && c.line !== "theory" ? l[0][l[0].length - 1] : undefined;
      return l.length ? { text: c.label, end, swatch: `<svg width="26" height="8" aria-hidden="true"><path d="M0 4H26" ${stroke(c)} stroke-width="2.4"/></svg>` } : null;
    }).filter((c) => c && !(Number.isNaN(c.end)));
    const legend = items.map((c) => `<li>${c.swatch}${html(c.text)}${c.end === undefined ? "" : ` <b>${format(c.end)}</b>`}</li>`).join("");
    const told = items.filter((c) => c.end !== undefined).map((c) => `${c.text} ends at ${format(c.end)}`).join(", ");
    f.share = (px) => (X.log ? Math.log(f.inverse.x(px) / X.lo) / Math.log(last / X.lo) : f.inverse.x(px) / last);
    return { f, svg: `<h3>${html(plot.title)}</h3><ul>${legend}</ul><svg width="${width}" height="${height}" role="img" aria-label="${html(plot.title + (told ? ": " + told : ""))}">${svg}</svg>` };
  }

  // The mechanism at record k: bars of all entries on one scale, fresh samples with their two parts,
  // neurons in the disc of two cosines, or a matrix as a map.
  const INSIDE = {
    bars(curves, at, width, height) {
      const kept = ({ key, where }) => at(key).map((v) => v.filter((_, i) => !where || at(where[0])[0][i] === where[1]));
      const all = curves.map(kept), seen = all.flat(2).filter(Number.isFinite);
      return (k) => columns(curves.flatMap((c, i) => all[i][k].map((v) => [[0, v, c.color]])), [Math.min(...seen, 0), Math.max(...seen, 1e-9)], width, height, all[0][k].length);
    },
    samples([plus, minus, noise], at, width, height) {
      return (k, notes) => {
        const parts = [1, -1].flatMap((y) => at(noise.key)[k].map((z) => [at((y > 0 ? plus : minus).key)[k], y * z]));
        const ends = parts.flatMap(([s, z]) => [0, s, s + z]).filter(Number.isFinite), wrong = parts.filter(([s, z]) => s + z <= 0).length;
        notes.push(`${wrong} of ${parts.length} misread (below 0)`);
        return columns(parts.map(([s, z]) => [[0, s, plus.color], [s, s + z, noise.color, 1]]), [Math.min(...ends), Math.max(...ends, 1e-9)], width, height, parts.length / 2);
      };
    },
    disc([a, b], at, width, height) {
      const r = height / 2 - 22, x = (v) => (width / 2 + r * v).toFixed(1), y = (v) => (height / 2 - r * v).toFixed(1);
      return (k) => `<circle cx="${width / 2}" cy="${height / 2}" r="${r}" fill="none" stroke="var(--soft)"/><path d="M${x(-1)} ${y(0)}H${x(1)}M${x(0)} ${y(-1)}V${y(1)}" stroke="var(--line)"/>` +
        `<text x="${width / 2 + r + 6}" y="${height / 2 + 4}">${html(a.label)}</text><text x="${width / 2}" y="14" text-anchor="middle">${html(b.label)}</text>` +
        at(a.key)[k].map((_, i) => {
          const trail = Array.from({ length: k + 1 }, (_, j) => x(at(a.key)[j][i]) + " " + y(at(b.key)[j][i]));
          return `<path d="M${trail.join("L")}" stroke="var(--${a.color})" fill="none" opacity=".35"/><circle cx="${x(at(a.key)[k][i])}" cy="${y(at(b.key)[k][i])}" r="4" fill="var(--${a.color})" opacity=".8"/>`;
        }).join("");
    },
    // A cell is as strong as its value. Rows stand in the order of where each is largest at the end;
    // those of a square table, which has no count of columns, in their own.
    map(curves, at, width, height) {
      const { key, color } = curves[curves.length - 1], all = at(key), n = curves[1] ? at(curves[0].key)[0] : Math.sqrt(all[0].length);
      const rows = (v) => Array.from({ length: v.length / n }, (_, i) => v.slice(n * i, n * i + n));
      const best = rows(all[all.length - 1]).map((r, i) => (curves[1] ? r.indexOf(Math.max(...r)) : i));
      const order = best.map((_, i) => i).sort((i, j) => best[i] - best[j]), h = height / best.length, w = curves[1] ? width / n : h;
      return (k) => order.map((i, y) => rows(all[k])[i].map((v, x) =>
        `<rect x="${w * x}" y="${h * y}" width="${w}" height="${h}" fill="var(--${color})" fill-opacity="${clip(v || 0, 0, 1)}" stroke="var(--line)"/>`).join("")).join("");
    },
  };
  INSIDE.grid = INSIDE.map;

  // Columns, each of pieces [from, to, color, thin]; a gap after the first group.
  function columns(all, [lo, hi], width, height, first) {
    const f = frame(width, height, { lo: 0, hi: 1, bare: true }, { lo: Math.min(lo, 0), hi }), step = f.box.width / (all.length + 1);
    const bars = all.map((pieces, i) => pieces.filter(([from, to]) => Number.isFinite(to - from)).map(([from, to, color, thin]) => {
      const x = f.box.left + step * (i + (i >= first)), w = Math.max(step * (thin ? 0.3 : 0.8), 1), top = f.y(Math.max(from, to)), h = Math.abs(f.y(from) - f.y(to));
      return `<rect x="${(x + (step - w) / 2).toFixed(1)}" y="${top.toFixed(1)}" width="${w.toFixed(1)}" height="${h.toFixed(1)}" fill="var(--${color})"${thin ? "" : ' opacity=".7"'}/>`;
    }).join(""));
    return f.svg + bars.join("") + `<path d="M${f.box.left} ${f.y(0).toFixed(1)}h${f.box.width}" stroke="var(--ink)"/>`;
  }

  // What a switch looks at is a product of powers of the parameters that it is on: a run of no steps
  // and one more for each of them give the law of its logarithm, and with it where it is zero.
  // The powers are the same everywhere, and a parameter of zero would not show its own.
  function probesOf({ on }, params) {
    const p = { ...params, steps: 0 };
    for (const k of on) p[k] = p[k] || 1;
    return [p, ...on.map((k) => ({ ...p, [k]: 2 * p[k] }))];
  }

  function lawOf({ on, key, at }, found) {
    const u = found.map((r) => Math.log(r.values[key] / at)), p = found[0].values, power = {};
    on.forEach((k, i) => (power[k] = (u[i + 1] - u[0]) / Math.LN2));
    return (name, q) => p[name] * Math.exp(-on.reduce((sum, k) => sum + (k !== name && power[k] && power[k] * Math.log(q[k] / p[k])), u[0]) / power[name]);
  }

  // The edge number k (it may lie between two) of the cells of an axis.
  const edge = (A, k) => A.scale === "log" ? A.min * (A.max / A.min) ** (k / A.cells) : A.min + (k / A.cells) * (A.max - A.min);

  // Cells from coarse to fine; y runs over a factor A.around on both sides of the boundary, as far
  // as its slider goes.
  function cellsOf(phase, boundary, least, most) {
    const middle = clip(boundary(edge(phase.x, phase.x.cells / 2)), least, most), { around } = phase.y;
    const axes = { x: phase.x, y: { ...phase.y, scale: "log", min: Math.max(middle / around, least), max: Math.min(middle * around, most) } };
    const at = (A) => Array.from({ length: A.cells }, (_, k) => (A.integer ? Math.round : Number)(edge(A, k + 0.5)));
    const xs = at(axes.x), ys = at(axes.y), cells = [];
    for (let gap = 4; gap >= 1; gap /= 2)
      ys.forEach((y, j) => xs.forEach((x, i) => {
        if (i % gap === 0 && j % gap === 0 && (gap === 4 || i % (2 * gap) || j % (2 * gap)))
          cells.push({ i, j, set: { [phase.x.name]: x, [phase.y.name]: y } });
      }));
    return { axes, cells };
  }

  const mark = (inner) => `<svg width="22" height="14" aria-hidden="true">${inner}</svg>`;
  const shade = (t) => `style="fill: color-mix(in srgb, var(--b) ${Math.round(100 * clip(t, 0.04, 1))}%, var(--back))"`;

  // The cells done, the rest hatched, the boundary; and the frame, on which the ring stands.
  function drawPhase(phase, { axes, cells, found }, boundary, label, width) {
    const A = (S) => ({ lo: S.min, hi: S.max, log: S.scale === "log", label: S.label });
    const f = frame(width, tall(width), A(axes.x), A(axes.y)), { left, top, ...b } = f.box;
    const area = `x="${left}" y="${top}" width="${b.width}" height="${b.height}"`;
    let svg = `<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 6L6 0" stroke="var(--soft)" stroke-width=".7"/></pattern><rect ${area} fill="url(#hatch)"/>`, d = "";
    found.forEach((r, k) => {
      const { i, j } = cells[k], x = f.x(edge(axes.x, i)), y = f.y(edge(axes.y, j + 1));
      const w = f.x(edge(axes.x, i + 1)) - x + 0.3, h = f.y(edge(axes.y, j)) - y + 0.3;
      svg += `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${w.toFixed(1)}" height="${h.toFixed(1)}" ${shade(r.curves[phase.show][0] / phase.top)}/>`;
    });
    for (let k = 0; boundary && k <= 40; k++) {
      const x = edge(axes.x, (k / 40) * axes.x.cells);
      d += (k ? "L" : "M") + f.x(x).toFixed(1) + " " + clip(f.y(boundary(x)), -9999, 9999).toFixed(1);
    }
    const line = (path) => `<path ${path} stroke="var(--ink)" fill="none" stroke-width="2" stroke-dasharray="2 4"/>`;
    svg += `<clipPath id="clipmap"><rect ${area}/></clipPath>` + line(`clip-path="url(#clipmap)" d="${d}"`);
    const legend = [[`<rect width="22" height="14" ${shade(0)}/>`, "0"], [`<rect width="22" height="14" ${shade(1)}/>`, format(phase.top)],
      found.length < cells.length && [`<rect width="22" height="14" fill="url(#hatch)"/>`, "still to train"],
      boundary && [line('d="M0 7H22"'), label]];
    const told = `${phase.title}: ${found.length} of ${cells.length} cells done`;
    return { f, legend: legend.filter(Boolean).map(([m, t]) => `<li>${mark(m)}${html(t)}</li>`).join(""),
      svg: `<svg width="${width}" height="${tall(width)}" role="img" aria-label="${html(told)}">${f.svg.replace(/<path d="M\d+ [\d.]+H.*?>/g, "")}${svg}</svg>` };
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
      this.sliders = this.config.sliders;
      const linked = this.linked(), { predict } = this.config;
      this.at = 1;
      this.asking = predict && !Object.keys(linked).length;
      this.params = { ...this.config.params, ...(this.asking ? predict.set : linked) };
      this.run = { id: 0, done: false, result: null };
      this.map = { id: 0, found: [] };
      this.build();
      this.runner = makeRunner(this.getAttribute("model"), (m) => this.hear(m));
      this.dark();
      this.watch();
      this.train();
    }

    build() {
      const c = this.config, { predict, scrub } = c, root = this.attachShadow({ mode: "open" });
      const slider = (s) => `<label><span>${html(s.label)}</span><input type="range" name="${s.name}" min="0" max="${axis(s, c.params).count}" step="1"><small aria-hidden="true"></small><output aria-hidden="true"></output>${s.names ? `<em aria-hidden="true">${s.names.map((n) => `<span>${html(n)}</span>`).join("")}</em>` : ""}</label>`;
      const rest = this.sliders.slice(3), open = rest.some((x) => this.params[x.name] !== c.params[x.name]);
      root.innerHTML = `<link rel="stylesheet" href="${window.FeatureLab.file("lab.css")}"><section class="lab" aria-label="${html(c.title)}" hidden><h2>${html(c.title)}</h2>
${predict ? `<div class="ask"><p id="ask">${maths(predict.ask)}</p><div class="bar" role="group" aria-labelledby="ask">${predict.answers.map((a, k) => `<button name="answer" value="${k}">${html(a.say)}</button>`).join("")}<button name="show">Show me</button></div><p class="verdict" role="status"></p></div>` : ""}
${c.states ? `<div class="bar states" role="group" aria-label="States to start from">${c.states.map((x, k) => `<button name="state" value="${k}">${html(x.label)}</button>`).join("")}</div><p class="guide" aria-live="polite"></p>` : ""}
<div class="plots" style="--least: ${(c.plots.length + !!c.phase + !!scrub) % 3 ? 310 : 280}px">${c.phase ? `<div class="map"><h3>${html(c.phase.title)}</h3><ul></ul><div class="pad"><div></div><span class="ring" tabindex="0" role="slider" aria-label="Ring on the map: left and right change ${html(c.phase.x.label)}, up and down ${html(c.phase.y.label)}" hidden></span></div></div>` : ""}${c.plots.map(() => '<div class="plot"></div>').join("")}${scrub ? `<div class="inside"><h3>${html(scrub.title)}</h3><ul></ul><div><div></div><div class="time"><button name="play" aria-label="Play the training">▶</button><input type="range" name="time" min="0" aria-label="Time of training"><output aria-hidden="true"></output></div><p class="note"></p></div></div>` : ""}</div>
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
        if (e.target.name === "time") this.seek(e.target.value / e.target.max);
        const s = this.sliders.find((x) => x.name === e.target.name);
        if (!s) return;
        this.params[s.name] = axis(s, this.params).value(Number(e.target.value));
        this.set(s);
      });
      root.querySelectorAll("[name=state]").forEach((b) => (b.onclick = () => { this.params = this.state(b.value); this.set(); }));
      root.querySelectorAll("[name=answer]").forEach((b) => (b.onclick = () => this.answer(Number(b.value))));
      if (predict) this.$("[name=show]").onclick = () => this.answer();
      if (scrub) {
        this.$("[name=play]").onclick = () => this.play();
        this.boxes.forEach((box, k) => {
          const move = (e) => e.buttons && this.frames && this.seek(this.frames[k].share(e.clientX - box.getBoundingClientRect().left));
          box.onpointerdown = (e) => { if (!e.button && e.target.closest("svg[role]")) { box.setPointerCapture(e.pointerId); move(e); } };
          box.onpointermove = (e) => { if (box.hasPointerCapture(e.pointerId)) move(e); };
        });
      }
      this.$("[name=seed]").onclick = () => { this.params.seed++; this.set(); };
      this.$("[name=reset]").onclick = () => { this.params = { ...c.params }; this.set(); };
      this.$("[name=link]").onclick = () => this.copy();
      this.$("[name=csv]").onclick = () => this.csv();
      this.$(".values").ontoggle = () => this.table();
      if (c.phase) this.grip(c.phase);
      this.place();
    }

    // An answer, or none, shows the lab; what is right is read off the run (verdict).
    answer(k) {
      const first = this.asking;
      this.asking = false;
      if (first) this.said = k;
      this.show();
      this.verdict();
      if (first && k === undefined) this.$(".controls input").focus({ preventScroll: true });
    }

    verdict() {
      const { predict } = this.config, { said, run } = this;
      if (!predict || said === undefined || !run.done || this.$(".ask").hidden) return;
      const v = ends(run.result, run.params), right = predict.answers.findIndex((a) => !a.if || holds(a.if, v));
      this.shadowRoot.querySelectorAll("[name=answer]").forEach((b, k) => {
        b.setAttribute("aria-pressed", k === said);
        b.setAttribute("aria-disabled", true);
        b.toggleAttribute("data-right", k === right);
      });
      this.$(".verdict").innerHTML = maths((said === right ? "You were right. " : `No: “${predict.answers[right].say}” is right. `) + say(predict.why, v));
    }

    // The moment that is shown, as a share of the training.
    seek(share) {
      this.at = clip(share, 0, 1);
      clearTimeout(this.film);
      this.draw();
    }

    play() {
      const count = this.run.result.times.length - 1, from = this.at < 1 ? Math.round(this.at * count) : 0;
      const go = (k) => {
        this.seek(k / count);
        if (k < count) this.film = setTimeout(() => go(k + 1), clip(3000 / count, 50, 700));
      };
      go(from);
    }

    // The ring on the map: dragged, moved by arrows, or called by a click or tap.
    grip({ x, y }) {
      const pad = this.$(".pad"), ring = this.$(".ring");
      const put = (vx, vy) => {
        for (const [A, v] of [[x, vx], [y, vy]]) {
          const s = this.sliders.find((o) => o.name === A.name), top = limit(s, this.params);
          this.params[A.name] = clip(s.integer ? Math.round(v) : Number(v.toPrecision(3)), s.min, top);
        }
        this.set();
      };
      const move = (e) => {
        const b = pad.getBoundingClientRect(), back = this.map.f && this.map.f.inverse;
        if (back) put(back.x(e.clientX - b.left), back.y(e.clientY - b.top));
      };
      pad.onpointerdown = (e) => {
        if (e.button || (e.pointerType === "touch" && e.target !== ring)) return; // a finger may scroll here
        e.preventDefault();
        ring.focus({ preventScroll: true });
        pad.setPointerCapture(e.pointerId);
        pad.onpointermove = move;
        move(e);
      };
      pad.onpointerup = pad.onpointercancel = () => { pad.onpointermove = null; };
      pad.onclick = (e) => { if (e.target !== ring) move(e); };
      ring.onkeydown = (e) => {
        const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[e.key] || [];
        if (dx === undefined || !this.map.axes) return;
        e.preventDefault();
        const k = e.shiftKey ? 5 : 1, span = x.scale === "log" ? 0 : Math.max(1, Math.round((x.max - x.min) / 45));
        const p = this.params[x.name];
        put(span ? p + dx * k * span : p * 1.05 ** (dx * k), this.params[y.name] * y.around ** ((dy * k) / 15));
      };
    }

    // Everything that shows the parameters; the slider that the reader holds stays where it is.
    place(held) {
      const p = this.params;
      for (const s of this.sliders) {
        p[s.name] = Math.min(p[s.name], limit(s, p));
        if (s !== held) this.$(`[name=${s.name}]`).value = Math.round(axis(s, p).position(p[s.name]));
      }
      this.show();
    }

    set(held) {
      this.place(held);
      this.train();
    }

    // Where the switch is predicted on a slider, or what else is marked there: [[value, label], …].
    marks(s) {
      const { config: { switch: w }, law, params: p } = this;
      if (s.marks) return s.marks.map((m) => [m.at, m.label]);
      if (!law || law.key !== this.lawKey() || !w.on.includes(s.name) || !this.speaks()) return [];
      const v = law.at(s.name, p);
      return v >= s.min && v <= limit(s, p) ? [[v, format(s.integer ? Math.round(v) : v)]] : [];
    }

    state(k) {
      return { ...this.config.params, ...this.config.states[k].set };
    }

    // Whether a theorem has a switch here.
    speaks() {
      return !(this.config.switch.except || []).some((one) => holds(one, this.params));
    }

    lawKey() {
      return JSON.stringify(this.params, (k, v) => ((this.config.switch.on.includes(k) || k === "seed" || k === "steps") ? 0 : v));
    }

    show() {
      const { states = [] } = this.config, p = this.params;
      const on = states.findIndex((_, k) => Object.entries(this.state(k)).every(([name, v]) => v === p[name]));
      states.forEach((_, k) => this.$(`[name=state][value="${k}"]`).setAttribute("aria-pressed", k === on));
      const { predict } = this.config;
      this.$(".lab").classList.toggle("asking", !!this.asking);
      if (predict) this.$(".ask").hidden = !this.asking && (this.said === undefined || Object.entries({ ...this.config.params, ...predict.set }).some(([name, v]) => v !== p[name]));
      if (states.length) this.$(".guide").innerHTML = on < 0 ? "" : maths(states[on].says);
      for (const s of this.sliders) {
        const input = this.$(`[name=${s.name}]`), v = this.params[s.name], text = s.names ? s.names[v - s.min] : format(v) + (s.unit || "");
        const A = axis(s, this.params), marks = this.marks(s), labels = marks.map((m) => m[1]).join(", ");
        input.parentNode.querySelectorAll("i").forEach((i) => i.remove());
        for (const [v] of marks) input.insertAdjacentHTML("afterend", `<i style="--at: ${(A.position(v) / A.count).toFixed(4)}"></i>`);
        input.parentNode.querySelector("small").textContent = labels && "▾ " + labels;
        input.parentNode.querySelector("output").textContent = text;
        input.setAttribute("aria-valuetext", text + (labels && `; ${s.marks ? "marked" : "predicted switch"}: ${labels}`));
      }
    }

    watch() {
      this.resize = new ResizeObserver(() => {
        const drawn = this.width;
        this.width = 0;
        if (this.$(".lab").hidden || this.wide() !== drawn) this.draw();
      });
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
      const now = performance.now();
      if (this.run.done && !(now - this.changed < 700)) this.ghost = this.run.result; // what a change begins from
      this.changed = now;
      const young = !this.run.done && now - this.run.from < 150;
      this.fillMap();
      this.drawMap();
      if (this.run.id && young) { // while a slider or the ring moves, runs end and are seen
        this.queued = this.queued || setTimeout(() => this.next(), 150);
        return;
      }
      clearTimeout(this.queued);
      this.queued = 0;
      this.run = { id: this.run.id + 1, done: false, result: this.run.result, params: { ...this.params }, from: now };
      this.runner.call("start", { kind: "run", id: this.run.id, model: this.getAttribute("model"), params: this.run.params });
      this.$(".lab").setAttribute("aria-busy", "true");
    }

    // The run that waited for the one before.
    next() {
      if (!this.queued) return;
      clearTimeout(this.queued);
      this.queued = this.run.from = 0;
      this.train();
    }

    fillMap() {
      const { config: { phase, switch: w }, params } = this;
      if (!w) return;
      const free = phase ? [phase.x.name, phase.y.name] : [...w.on, "seed", "steps"];
      const key = JSON.stringify(params, (k, v) => (free.includes(k) ? 0 : v));
      if (key === this.map.key) return;
      this.map = { ...this.map, key, id: this.map.id + 1, params: { ...params }, probes: [], found: [], stale: true };
      this.runner.call("stop", "cells");
      clearTimeout(this.mapTimer);
      const known = this.law && this.law.key === this.lawKey();
      this.mapTimer = setTimeout(() => (known ? this.cells() : this.fill(probesOf(w, this.map.params))), this.law ? 300 : 0);
    }

    fill(cells) {
      this.runner.call("start", { kind: "cells", id: this.map.id, model: this.getAttribute("model"), params: this.map.params, cells });
    }

    cells() {
      const { map, config: { phase } } = this;
      if (!phase) return;
      const { x, y } = phase, s = this.sliders.find((o) => o.name === y.name), line = (v) => this.law.at(y.name, { ...map.params, [x.name]: v });
      Object.assign(map, cellsOf(phase, line, s.min, limit(s, map.params)), { stale: false });
      this.fill(map.cells.map((c) => c.set));
      this.drawMap();
    }

    // A cell of the map is done, or a probe: after the last the law and the cells are known.
    hearCell(m) {
      const { map, config: { switch: w } } = this;
      if (m.id !== map.id) return;
      if (!map.stale) {
        map.found[m.at] = m.result;
        this.seen = this.seen || requestAnimationFrame(() => { this.seen = 0; this.drawMap(); });
      } else if (map.probes.push(m.result) === w.on.length + 1) {
        this.law = { key: this.lawKey(), at: lawOf(w, map.probes) };
        this.show();
        if (this.config.phase) this.cells();
      }
    }

    hear(m) {
      if (m.error) {
        this.$(".bar .note").textContent = "This run failed: " + m.error;
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
        this.$(".bar .note").textContent = `Training: ${Math.round(100 * m.share)} %`;
        return;
      }
      this.run.ms = m.ms;
      this.$(".lab").setAttribute("aria-busy", "false");
      this.$(".bar .note").textContent = `Seed ${this.params.seed}; trained in your browser in ${format(Math.round(m.ms))} ms.${this.ghost ? " Pale: the run before." : ""}`;
      this.table();
      this.verdict();
      if (this.queued) {
        this.next();
        return;
      }
      clearTimeout(this.speech);
      this.speech = setTimeout(() => (this.$(".says").innerHTML = maths(this.sentence())), this.spoken ? 400 : 0);
      this.spoken = true;
    }

    sentence() {
      return say(this.config.sentence, ends(this.run.result, this.run.params));
    }

    // The width of each picture, read once a size.
    wide() {
      return (this.width = this.width || Math.max(240, Math.floor(this.boxes[0].clientWidth)));
    }

    draw() {
      if (!this.run.result || this.$(".lab").hidden) return;
      const width = this.wide(), { plots, scrub } = this.config, { result } = this.run, { times } = result, ranges = plots.map((p) => range(p, result));
      const now = Math.round(this.at * (times.length - 1));
      this.frames = plots.map((p, k) => {
        const box = this.boxes[k], all = ranges.filter((_, i) => i === k || (p.group && plots[i].group === p.group));
        const span = [Math.min(...all.map((r) => r[0])), Math.max(...all.map((r) => r[1]))];
        const { f, svg } = drawPlot(p, result, this.ghost, span, width, "clip" + k, scrub && this.at < 1 ? now : undefined);
        box.innerHTML = svg;
        return f;
      });
      if (scrub) this.drawInside(scrub, now, width);
      this.drawMap(width);
      if (!this.landed) window.FeatureLab.land(this);
      this.landed = true;
    }

    drawInside({ show, curves, sentence, title }, now, width) {
      const { result } = this.run, range = this.$("[name=time]"), notes = [];
      const height = tall(width) + ({ disc: 30, map: 80 }[show] || 0);
      const svg = INSIDE[show](curves, (key) => result.curves[key], width, height)(now, notes);
      const swatch = (c) => `<li>${mark(`<rect y="3" width="22" height="8" fill="var(--${c.color})"/>`)}${html(c.label)}</li>`;
      const shown = curves.filter((c, k) => show !== "disc" && c.color && curves.findIndex((o) => o.label === c.label) === k);
      this.$(".inside ul").innerHTML = shown.map(swatch).join("") + notes.map((n) => `<li>${n}</li>`).join("");
      const told = say(sentence, ends(result, this.run.params || this.params, now));
      this.$(".inside div div").innerHTML = `<svg width="${width}" height="${height}" role="img" aria-label="${html(title + ": " + told)}">${svg}</svg>`;
      this.$(".inside .note").innerHTML = maths(told);
      range.max = result.times.length - 1;
      range.value = now;
      range.setAttribute("aria-valuetext", told);
      const [{ x }] = this.config.plots;
      this.$(".time output").textContent = x && x.label !== "step" ? (x.sign || "n") + " = " + format(result.curves[x.key][now]) : "step " + format(result.times[now]);
    }

    drawMap(width = this.wide()) {
      const { map, params: p, config: { phase, switch: w } } = this, ring = this.$(".ring");
      if (!ring || this.$(".lab").hidden) return;
      this.$(".pad").style.minHeight = tall(width) + "px";
      if (!map.axes) return;
      const { x, y } = map.axes, boundary = (v) => this.law.at(y.name, { ...p, [x.name]: v });
      const { f, svg, legend } = drawPhase(phase, map, this.speaks() && boundary, w.label, width);
      map.f = f;
      const at = [clip(p[x.name], x.min, x.max), clip(p[y.name], y.min, y.max)];
      const off = [x, y].filter((A, k) => Math.abs(p[A.name] / at[k] - 1) > 1e-9).map((A) => `${A.label} = ${format(p[A.name])}`);
      this.$(".map ul").innerHTML = legend + `<li>${mark('<circle cx="11" cy="7" r="5" fill="var(--back)" stroke="var(--ink)" stroke-width="2.5"/>')}you${off.length ? `, off the map: ${html(off.join(", "))}` : ": drag the ring"}</li>`;
      this.$(".pad > div").innerHTML = svg;
      ring.style.cssText = `left: ${f.x(at[0]).toFixed(1)}px; top: ${f.y(at[1]).toFixed(1)}px`;
      ring.classList.toggle("off", off.length > 0);
      const state = { valuemin: x.min, valuemax: x.max, valuenow: at[0], valuetext: [x, y].map((A) => `${A.label} = ${format(p[A.name])}`).join(", ") };
      for (const k in state) ring.setAttribute("aria-" + k, state[k]);
      ring.hidden = false;
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
      const set = Object.entries(this.run.params).map(([k, v]) => `${k} = ${v}`).join(", ");
      const text = ["# " + this.config.title, "# " + set, "# " + this.link(), "# " + (this.getAttribute("source") || this.getAttribute("model")), columns.map((c) => c[0]).join(",")].concat(this.run.result.times.map((_, k) => columns.map((c) => String(c[1][k])).join(","))).join("\n") + "\n";
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
      link.download = `${this.id || "lab"}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    }

    // ?id=n:50,seed:3#id restores the state; what is not a parameter or out of range is left out.
    link() {
      const p = this.params, d = this.config.params;
      const last = (k) => this.sliders.some((s) => s.name === k && typeof s.max === "string");
      const state = Object.keys(p).sort((a, b) => last(a) - last(b)).filter((k) => p[k] !== d[k]).map((k) => `${k}:${p[k]}`).join(",");
      return location.href.replace(/[?#].*$/, "") + (state ? `?${this.id}=${state}` : "") + `#${this.id}`;
    }

    linked() {
      const out = {}, all = { ...this.config.params }, text = new URLSearchParams(location.search).get(this.id) || "";
      for (const part of text.split(",")) {
        const [k, v] = part.split(":"), value = Number(v);
        if (!v || !Number.isFinite(value)) continue;
        const s = this.sliders.find((x) => x.name === k);
        if (s && value >= s.min && value <= limit(s, all)) out[k] = all[k] = s.integer ? Math.round(value) : value;
        else if (k === "seed" && Number.isInteger(value) && value >= 0) out[k] = value;
      }
      return out;
    }

    async copy() {
      const text = this.link(), note = this.$(".bar .note");
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
      return { model: this.getAttribute("model"), where: this.runner.where, ...this.run, done: this.run.done && !this.queued, cells: (this.map.cells || []).map((c) => c.set), found: this.map.found };
    }
  }

  customElements.define("feature-lab", FeatureLabElement);
})();
