// The map of runs over two parameters, and the law that draws its boundary.
"use strict";
(function (lab) {
  const { html, clip, format, rect, frame, picture } = lab;

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
  // as its slider goes; where no theory knows one, over the upper end of the slider.
  function cellsOf(phase, boundary, least, most) {
    const { around } = phase.y, told = boundary(edge(phase.x, phase.x.cells / 2)), middle = clip(told > 0 ? told : most / around, least, most);
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
  const shade = (color, t) => `style="fill: color-mix(in srgb, var(--${color}) ${Math.round(100 * clip(t, 0.04, 1))}%, var(--back))"`;

  // The cells done, the rest hatched, the boundary; and the frame, on which the ring stands.
  function drawPhase(phase, { axes, cells, found }, boundary, label, width, height) {
    const { color = "b" } = phase, A = (S) => ({ lo: S.min, hi: S.max, log: S.scale === "log", label: S.label });
    const f = frame(width, height, A(axes.x), A(axes.y)), { left, top, ...b } = f.box;
    const area = (more) => rect(left, top, b.width, b.height, more);
    let svg = `<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 6L6 0" stroke="var(--soft)" stroke-width=".7"/></pattern>${area('fill="url(#hatch)"')}`, d = "";
    found.forEach((r, k) => {
      const { i, j } = cells[k], x = f.x(edge(axes.x, i)), y = f.y(edge(axes.y, j + 1));
      const w = f.x(edge(axes.x, i + 1)) - x + 0.3, h = f.y(edge(axes.y, j)) - y + 0.3;
      svg += rect(x, y, w, h, shade(color, r.curves[phase.show][0] / phase.top));
    });
    for (let k = 0; boundary && k <= 40; k++) {
      const x = edge(axes.x, (k / 40) * axes.x.cells);
      d += (k ? "L" : "M") + f.x(x).toFixed(1) + " " + clip(f.y(boundary(x)), -9999, 9999).toFixed(1);
    }
    const line = (path) => `<path ${path} stroke="var(--ink)" fill="none" stroke-width="2" stroke-dasharray="2 4"/>`;
    svg += `<clipPath id="clipmap">${area()}</clipPath>` + line(`clip-path="url(#clipmap)" d="${d}"`);
    const legend = [[`<rect width="22" height="14" ${shade(color, 0)}/>`, "0"], [`<rect width="22" height="14" ${shade(color, 1)}/>`, format(phase.top)],
      found.length < cells.length && [`<rect width="22" height="14" fill="url(#hatch)"/>`, "still to train"],
      boundary && [line('d="M0 7H22"'), label]];
    const told = `${phase.title}: ${found.length} of ${cells.length} cells done`;
    return { f, legend: legend.filter(Boolean).map(([m, t]) => `<li>${mark(m)}${html(t)}</li>`).join(""),
      svg: picture(told, width, height, f.svg.replace(/<path d="M\d+ [\d.]+H.*?>/g, "") + svg) };
  }

  Object.assign(lab, { mark, probesOf, lawOf, cellsOf, drawPhase });
})(window.FeatureLab);
