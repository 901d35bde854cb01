// Axes, curves and columns as SVG.
"use strict";
(function (lab) {
  const html = (text) => String(text).replace(/[&<>"]/g, (c) => "&#" + c.charCodeAt(0) + ";");
  const clip = (x, lo, hi) => Math.min(Math.max(x, lo), hi);
  const { format } = FeatureLabEngine();
  const rect = (x, y, w, h, more = "") => `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${w.toFixed(1)}" height="${h.toFixed(1)}" ${more}/>`;
  const picture = (told, width, height, svg) => `<svg width="${width}" height="${height}" role="img" aria-label="${html(told)}">${svg}</svg>`;

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

  // One panel of curves. What has not happened yet at record `now` is pale.
  function drawPlot(plot, result, ghost, [lo, hi], width, height, id, now) {
    const log = plot.scale === "log", drawn = plot.curves.map((c) => lines(c, result.curves));
    const x = (r) => (plot.x ? r.curves[plot.x.key] : r.times), all = x(result), last = all[all.length - 1] || 1;
    const X = plot.x ? { lo: all[0], label: plot.x.label, log: plot.x.scale } : { lo: 0, label: "step", whole: 1 };
    const f = frame(width, height, { ...X, hi: last }, { lo, hi, log }), past = now < all.length - 1;
    const clipped = (name, w) => `<clipPath id="${name}">${rect(f.box.left, f.box.top - 1, w, f.box.height + 2)}</clipPath>`;
    let svg = f.svg + clipped(id, f.box.width) + clipped(id + "now", Math.max(f.x(all[now]) - f.box.left, 0)) + `<g clip-path="url(#${id})">`;
    for (const level of plot.levels || []) {
      const y = f.y(level.at).toFixed(1), right = f.box.left + f.box.width;
      svg += `<path d="M${f.box.left} ${y}H${right}" stroke="var(--ink)" stroke-dasharray="1 5" stroke-width="1.5"/>` +
        `<text x="${right - 4}" y="${y - 5}" text-anchor="end">${html(level.label)}</text>`;
    }
    const at = plot.x && plot.x.mark ? result.curves[plot.x.mark.key][0] : NaN, left = 2 * f.x(at) < width;
    if (at > X.lo && at < last)
      svg += `<path d="M${f.x(at).toFixed(1)} ${f.box.top}v${f.box.height}" stroke="var(--ink)" stroke-dasharray="1 5" stroke-width="1.5"/>` +
        `<text x="${f.x(at)}" y="${f.box.top + 12}" text-anchor="${left ? "start" : "end"}" dx="${left ? 5 : -5}">${html(plot.x.mark.label)}</text>`;
    plot.curves.forEach((c, k) => {
      const thin = drawn[k].length > 1, theory = c.line === "theory";
      for (const l of ghost && !thin && !theory ? lines(c, ghost.curves) : [])
        svg += `<path class="ghost" d="${path(x(ghost), l, f.x, f.y, log)}" ${stroke(c)}/>`;
      for (const l of drawn[k]) {
        const d = `<path d="${path(all, l, f.x, f.y, log)}" ${stroke(c)} stroke-width="${thin ? 1 : 2.2}" opacity="${thin ? 0.6 : 1}"/>`;
        svg += past && !theory ? `<g opacity=".2">${d}</g><g clip-path="url(#${id}now)">${d}</g>` : d;
      }
    });
    svg += "</g>";
    if (past) svg += `<path class="now" d="M${f.x(all[now]).toFixed(1)} ${f.box.top}v${f.box.height}"/>`;
    const items = plot.curves.map((c, k) => {
      const l = drawn[k], end = l.length === 1 && c.line !== "theory" ? l[0][now] : undefined;
      return l.length ? { text: c.label, end, swatch: `<svg width="22" height="8" aria-hidden="true"><path d="M0 4H22" ${stroke(c)} stroke-width="2.4"/></svg>` } : null;
    }).filter((c) => c && !(Number.isNaN(c.end)));
    const legend = items.map((c) => `<li>${c.swatch}${html(c.text)}${c.end === undefined ? "" : ` <b>${format(c.end)}</b>`}</li>`).join("");
    const told = items.filter((c) => c.end !== undefined).map((c) => `${c.text} ${past ? "is" : "ends"} at ${format(c.end)}`).join(", ");
    f.share = (px) => (X.log ? Math.log(f.inverse.x(px) / X.lo) / Math.log(last / X.lo) : f.inverse.x(px) / last);
    return { f, legend, svg: picture(plot.title + (told ? ": " + told : ""), width, height, svg) };
  }

  // Groups of columns, a name below each; a column is pieces [from, to, color, thin].
  function columns(groups, [lo, hi], width, height, names = []) {
    const f = frame(width, height, { lo: 0, hi: 1, bare: true }, { lo: Math.min(lo, 0), hi });
    const gap = 0.6, step = f.box.width / (groups.flat().length + gap * (groups.length - 1));
    let x = f.box.left, svg = f.svg;
    groups.forEach((group, k) => {
      if (names[k]) svg += `<text x="${(x + (step * group.length) / 2).toFixed(1)}" y="${height - 20}" text-anchor="middle">${html(names[k])}</text>`;
      for (const pieces of group) {
        for (const [from, to, color, thin] of pieces.filter((p) => Number.isFinite(p[1] - p[0]))) {
          const w = Math.max(step * (thin ? 0.3 : 0.8), 1), top = f.y(Math.max(from, to)), h = Math.abs(f.y(from) - f.y(to));
          svg += rect(x + (step - w) / 2, top, w, h, `fill="var(--${color})"${thin ? "" : ' opacity=".7"'}`);
        }
        x += step;
      }
      x += gap * step;
    });
    return svg + `<path d="M${f.box.left} ${f.y(0).toFixed(1)}h${f.box.width}" stroke="var(--ink)"/>`;
  }

  Object.assign(lab, { html, clip, format, rect, picture, frame, columns, range, drawPlot });
})(window.FeatureLab);
