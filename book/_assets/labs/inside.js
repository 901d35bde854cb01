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
    // A sample, or a token, a row: its coordinates (hollow below zero), its label, and bars that move.
    rows({ rows, cells = [], names = [], label, bars = [] }, at, width, height, params) {
      const value = (v) => params[v] ?? v, total = value(rows), gap = 7, y = label && at(label.key)[0], flipped = label && label.flipped ? at(label.flipped)[0] : [];
      const [good, bad] = names, words = bad && bad.map ? [...good.slice(0, (total + 1) / 2), ...bad.slice(0, total / 2)] : names;
      const all = Array.from(flipped.length ? flipped : Array(total), (f, i) => i), some = all.filter((i) => flipped[i]).slice(0, 2);
      const shown = [...some, ...all.filter((i) => !flipped[i])].slice(0, total).sort((i, j) => i - j);
      const side = 7 * Math.max(0, ...words.map((n) => n.length + 1)), high = (height - 18) / shown.length;
      const wide = cells.length ? clip(0.3 * width, 70, 150) / (bars.length || 1) : (width - side) / bars.length - gap, left = width - bars.length * (wide + gap);
      const size = Math.min(high - 3, 18, (left - side - (label ? 52 : 0) - gap * cells.length) / cells.reduce((sum, g) => sum + value(g.count), 0.01));
      const bar = (x, y, w, h, more) => rect(x, y - h / 2, w, h, more);
      const text = (x, y, said, more = "") => `<text x="${x}" y="${y}" ${more}>${html(said)}</text>`, mid = 'text-anchor="middle"';
      const entry = (g, part, i, j) => {
        if (g.at && (i < g.at[0] || i > g.at[1])) return 0;
        if (g.key) return at(g.key)[0][(i * at(g.key)[0].length) / total + (g.from || 0) + j];
        return g.noise ? value(g.noise) * grain(i + params.seed, j, part) : value(g.size) * (g.of ? at(g.of)[0][i] : 1);
      };
      const cell = (v, x, y, { color, full = 2.5 }) => {
        const strong = Math.min(Math.abs(v) / full, 1), ink = `var(--${color})`;
        return bar(x + 1, y, size - 2, size - 2, `stroke="${ink}" stroke-opacity="${Math.max(strong, 0.25)}" stroke-width="${v < 0 ? 1 + 2 * strong : 1}" fill="${ink}" fill-opacity="${v > 0 ? strong : 0}"`);
      };
      return (k, notes) => {
        if (cells.length) notes.push("hollow: below zero");
        if (some.length) notes.push("⇄ flipped label");
        const heads = [[left - 30, label && (label.label || "label")], ...bars.map((b, j) => [left + j * (wide + gap) + gap + wide / 2, b.label])];
        return heads.map(([x, said]) => said ? text(x, 12, said, mid) : "").join("") + shown.map((i, row) => {
          const v = 18 + high * (row + 0.5);
          let svg = words[i] ? text(0, v + 4, words[i]) : "", x = side;
          cells.forEach((g, part) => {
            for (let j = 0; j < value(g.count); j++, x += size) svg += cell(g.apart && Math.floor((j * total) / g.count) !== row ? 0 : entry(g, part, i, j), x, v, g);
            x += gap;
          });
          if (label) svg += text(left - 30, v + 4, (label.names || ["−1", "+1"])[y[i] > 0 === !flipped[i] ? 1 : 0] + (flipped[i] ? " ⇄" : ""), mid + (flipped[i] ? ' style="fill:var(--b)"' : ""));
          return svg + bars.map((b, j) => {
            const now = at(b.key)[k][i], zero = left + j * (wide + gap) + gap + (b.whole ? 0 : wide / 2), w = clip(now / b.span, -1, 1) * wide / (b.whole ? 1 : 2);
            const ink = b.color || (now * y[i] > 0 ? "a" : "b");
            return bar(zero - 0.5, v, 1, high * 0.8, 'fill="var(--soft)"') + (now === now ? bar(Math.min(zero, zero + w), v, Math.abs(w), high * 0.56, `fill="var(--${ink})"`) : "");
          }).join("");
        }).join("");
      };
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
      return (k, notes) => (among && notes.push("grey: samples, full where y > 0"), `<circle cx="${width / 2}" cy="${height / 2}" r="${r}" fill="none" stroke="var(--soft)"/><path d="M${x(-1)} ${y(0)}H${x(1)}M${x(0)} ${y(-1)}V${y(1)}" stroke="var(--line)"/>` +
        (among ? dots(among, at, x, y) : "") +
        `<text x="${width / 2 + r + 6}" y="${height / 2 + 4}">${html(a.label)}</text><text x="${width / 2}" y="14" text-anchor="middle">${html(b.label)}</text>` +
        at(a.key)[k].map((_, i) => {
          const trail = Array.from({ length: k + 1 }, (_, j) => x(at(a.key)[j][i]) + " " + y(at(b.key)[j][i]));
          return `<path d="M${trail.join("L")}" stroke="var(--${a.color})" fill="none" opacity=".35"/><circle cx="${x(at(a.key)[k][i])}" cy="${y(at(b.key)[k][i])}" r="4" fill="var(--${a.color})" opacity=".8"/>`;
        }).join(""));
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
