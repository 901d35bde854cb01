// What the network sees and what it becomes, at record k: bars of all entries on one scale, or of two
// vectors side by side, fresh samples with their two parts, neurons in the disc of two cosines, or a
// matrix as a map.
"use strict";
(function (lab) {
  const { html, clip, columns } = lab;
  const kept = ({ key, where }, at) => at(key).map((v) => v.filter((_, i) => !where || at(where[0])[0][i] === where[1]));
  const INSIDE = {
    bars(curves, at, width, height, names) {
      const all = curves.map((c) => kept(c, at)), seen = all.flat(2).filter(Number.isFinite), span = [Math.min(...seen, 0), Math.max(...seen, 1e-9)];
      return (k) => columns(curves.map((c, i) => all[i][k].map((v) => [[0, v, c.color]])), span, width, height, names);
    },
    // Two vectors, entry beside entry.
    pairs(curves, at, width, height, names) {
      const all = curves.map((c) => kept(c, at)), seen = all.flat(2).filter(Number.isFinite), span = [Math.min(...seen, 0), Math.max(...seen, 1e-9)];
      return (k) => columns(all[0][k].map((_, i) => curves.map((c, j) => [[0, all[j][k][i], c.color]])), span, width, height, names);
    },
    samples([plus, minus, noise], at, width, height) {
      return (k, notes) => {
        const groups = [1, -1].map((y) => at(noise.key)[k].map((z) => [at((y > 0 ? plus : minus).key)[k], y * z])), parts = groups.flat();
        const ends = parts.flatMap(([s, z]) => [0, s, s + z]).filter(Number.isFinite), wrong = parts.filter(([s, z]) => s + z <= 0).length;
        notes.push(`${wrong} of ${parts.length} misread (below 0)`);
        const draw = ([s, z]) => [[0, s, plus.color], [s, s + z, noise.color, 1]];
        return columns(groups.map((g) => g.map(draw)), [Math.min(...ends), Math.max(...ends, 1e-9)], width, height, ["class +1", "class −1"]);
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
  lab.INSIDE = INSIDE;
})(window.FeatureLab);
