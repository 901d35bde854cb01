// What the network sees and what it becomes, at record k: samples as rows of their coordinates with
// what is answered now, neurons among samples in a disc, bars of all entries on one scale or of two
// vectors side by side, fresh samples with their two parts, or a matrix as a map.
"use strict";
(function (lab) {
  const { html, clip, rect, columns } = lab;
  const kept = ({ key, where }, at) => at(key).map((v) => v.filter((_, i) => !where || at(where[0])[0][i] === where[1]));
  const entries = (curves, at) => {
    const all = curves.map((c) => kept(c, at)), seen = all.flat(2).filter(Number.isFinite);
    return [all, [Math.min(...seen, 0), Math.max(...seen, 1e-9)]];
  };
  // Fresh samples behind the neurons, at a third of their size: full where the target is positive.
  const dots = (key, at, x, y) => at(key[0])[0].map((v, i) => `<circle cx="${x(v / 3)}" cy="${y(at(key[1])[0][i] / 3)}" r="2.5" stroke="var(--soft)" opacity=".6" fill="${at(key[2])[0][i] > 0 ? "var(--soft)" : "none"}"/>`).join("");
  // A number that looks normal, the same for the same coordinate: pictures of noise need no more.
  const grain = (...at) => {
    const u = (salt) => { const v = Math.sin(at.reduce((sum, a, k) => sum + a * [13, 78.2, 39.4][k], salt)) * 43758.5; return v - Math.floor(v); };
    return 2 * (u(1) + u(2) + u(3) - 1.5);
  };
  const INSIDE = {
    // A sample, or a token, a row: its coordinates (hollow below zero), its label, and bars that move;
    // before the question is answered (k < 0) only what training does not change.
    rows: ({ rows, cells = [], names = [], label, bars: all }, at, width, height, params) => (k, notes) => {
      const value = (v) => params[v] ?? (at(v) ? at(v)[0] : v), total = value(rows), gap = 7, high = (height - 18) / total, mid = 'text-anchor="middle"';
      const bars = (all || []).filter((b) => k >= 0 || String(at(b.key)[0]) === String(at(b.key)[at(b.key).length - 1]));
      const y = label && at(label.key)[0], flipped = label && label.flipped ? at(label.flipped)[0] : [], wrong = flipped.filter((f) => f).length;
      const some = (turned) => Array.from(flipped.length ? flipped : Array(total), (f, i) => i).filter((i) => !flipped[i] === !turned);
      const shown = [...some(true).slice(0, 2), ...some()].slice(0, total).sort((i, j) => i - j);
      const [good, bad] = names, words = bad && bad.map ? [...good.slice(0, (total + 1) / 2), ...bad.slice(0, total / 2)] : names;
      const side = 7 * Math.max(0, ...words.map((n) => n.length + 1)), room = cells.length ? clip(0.3 * width, 70, 150) : width - side;
      const wide = room / (bars.length || 1) - gap, left = width - bars.length * (wide + gap);
      const size = Math.min(high - 3, 18, (left - side - (label ? 52 : 0) - gap * cells.length) / cells.reduce((sum, g) => sum + value(g.count), 0.01));
      const box = (x, y, w, h, more) => rect(x, y - h / 2, w, h, more);
      const text = (x, y, said, more = "") => `<text x="${x}" y="${y}" ${more}>${html(said)}</text>`;
      const entry = (g, part, row, i, j) => {
        if (g.at && (i < g.at[0] || i > g.at[1]) || g.apart && Math.floor((j * total) / g.count) !== row) return 0;
        if (g.key) return at(g.key)[0][(i * at(g.key)[0].length) / total + (g.from || 0) + j];
        return g.noise ? value(g.noise) * grain(i + 101 * params.seed, j, part) : value(g.size) * (g.of ? at(g.of)[0][i] : 1);
      };
      const cell = (v, x, y, { color, full = 2.5 }) => {
        const strong = Math.min(Math.abs(v) / full, 1), pen = v < 0 ? Math.min(1 + 2 * strong, size / 4) : 0.7, w = size - 1 - pen;
        return box(x + (size - w) / 2, y, w, w, `stroke="var(--${v ? color : "soft"})" stroke-opacity="${v ? Math.max(strong, 0.25) : 0.3}" stroke-width="${pen.toFixed(1)}" fill="var(--${color})" fill-opacity="${v > 0 ? strong : 0}"`);
      };
      let svg = label ? text(left - 30, 12, label.label || "label", mid) : "", below = false;
      bars.forEach((b, j) => { svg += text(left + j * (wide + gap) + gap + wide / 2, 12, b.label, mid); });
      shown.forEach((i, row) => {
        const line = 18 + high * (row + 0.5);
        let x = side;
        if (words[i]) svg += text(0, line + 4, words[i]);
        cells.forEach((g, part) => {
          for (let j = 0; j < value(g.count); j++, x += size) {
            const v = entry(g, part, row, i, j);
            below = below || v < 0;
            svg += cell(v, x, line, g);
          }
          x += gap;
        });
        if (label) svg += text(left - 30, line + 4, (label.names || ["−1", "+1"])[y[i] > 0 === !flipped[i] ? 1 : 0] + (flipped[i] ? " ⇄" : ""), mid + (flipped[i] ? ' style="fill:var(--b)"' : ""));
        bars.forEach((b, j) => {
          const span = b.span || Math.max(...at(b.key).flatMap((v) => shown.map((i) => Math.abs(v[i]) || 0)), 1e-9);
          const now = at(b.key)[Math.max(k, 0)][i], from = left + j * (wide + gap) + gap + (b.whole ? 0 : wide / 2), w = (clip(now / span, -1, 1) * wide) / (b.whole ? 1 : 2);
          svg += box(from - 0.5, line, 1, high * 0.8, 'fill="var(--soft)"');
          if (now === now) svg += box(Math.min(from, from + w), line, Math.abs(w), high * 0.56, `fill="var(--${b.color || (now * y[i] > 0 ? "soft" : "b")})"`);
        });
      });
      if (below) notes.push("hollow: below zero");
      if (wrong) notes.push(`⇄ flipped label (${wrong} of ${flipped.length})`);
      if (label && bars.length) notes.push("orange: against the truth");
      return svg;
    },
    bars({ curves, names }, at, width, height) {
      const [all, span] = entries(curves, at);
      return (k) => columns(curves.map((c, i) => all[i][k].map((v) => [[0, v, c.color]])), span, width, height, names);
    },
    // Two vectors, entry beside entry.
    pairs({ curves, names }, at, width, height) {
      const [all, span] = entries(curves, at);
      return (k) => columns(all[0][k].map((_, i) => curves.map((c, j) => [[0, all[j][k][i], c.color]])), span, width, height, names);
    },
    samples({ curves: [plus, minus, noise] }, at, width, height) {
      return (k, notes) => {
        const groups = [1, -1].map((y) => at(noise.key)[k].map((z) => [at((y > 0 ? plus : minus).key)[k], y * z])), parts = groups.flat();
        const ends = parts.flatMap(([s, z]) => [0, s, s + z]).filter(Number.isFinite), wrong = parts.filter(([s, z]) => s + z <= 0).length;
        notes.push(`${wrong} of ${parts.length} misread (below 0)`);
        const draw = ([s, z]) => [[0, s, plus.color], [s, s + z, noise.color, 1]];
        return columns(groups.map((g) => g.map(draw)), [Math.min(...ends), Math.max(...ends, 1e-9)], width, height, ["class +1", "class −1"]);
      };
    },
    disc({ curves: [a, b], among }, at, width, height) {
      const r = height / 2 - 22, x = (v) => (width / 2 + r * v).toFixed(1), y = (v) => (height / 2 - r * v).toFixed(1);
      return (k, notes) => {
        if (among) notes.push("grey: fresh samples, x/3, full where y > 0" + (k < 0 ? "" : "; blue: neurons"));
        return `<circle cx="${width / 2}" cy="${height / 2}" r="${r}" fill="none" stroke="var(--soft)"/><path d="M${x(-1)} ${y(0)}H${x(1)}M${x(0)} ${y(-1)}V${y(1)}" stroke="var(--line)"/>` +
        (among ? dots(among, at, x, y) : "") +
        `<text x="${width / 2 + r + 6}" y="${height / 2 + 4}">${html(a.label)}</text><text x="${width / 2}" y="14" text-anchor="middle">${html(b.label)}</text>` +
        (k < 0 ? [] : at(a.key)[k]).map((_, i) => {
          const trail = Array.from({ length: k + 1 }, (_, j) => x(at(a.key)[j][i]) + " " + y(at(b.key)[j][i]));
          return `<path d="M${trail.join("L")}" stroke="var(--${a.color})" fill="none" opacity=".35"/><circle cx="${x(at(a.key)[k][i])}" cy="${y(at(b.key)[k][i])}" r="4" fill="var(--${a.color})" opacity=".8"/>`;
        }).join("");
      };
    },
    // A cell is as strong as its value. Rows stand in the order of where each is largest at the end;
    // those of a square table, which has no count of columns, in their own.
    map({ curves }, at, width, height) {
      const { key, color } = curves[curves.length - 1], all = at(key), n = curves[1] ? at(curves[0].key)[0] : Math.sqrt(all[0].length);
      const rows = (v) => Array.from({ length: v.length / n }, (_, i) => v.slice(n * i, n * i + n));
      const best = rows(all[all.length - 1]).map((r, i) => (curves[1] ? r.indexOf(Math.max(...r)) : i));
      const order = best.map((_, i) => i).sort((i, j) => best[i] - best[j]), h = height / best.length, w = curves[1] ? width / n : h;
      return (k) => order.map((i, y) => rows(all[k])[i].map((v, x) =>
        rect(w * x, h * y, w, h, `fill="var(--${color})" fill-opacity="${clip(v || 0, 0, 1)}" stroke="var(--line)"`)).join("")).join("");
    },
  };
  INSIDE.grid = INSIDE.map;
  lab.INSIDE = INSIDE;
})(window.FeatureLab);
