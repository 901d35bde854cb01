// What few kernels call: a model's script carries those of these functions that its kernels name.

// o = L with L L' = a, lower triangular (n, n).
rt.cholesky = (o, n, a, a0, ai, aj) => {
  o.fill(0);
  for (let i = 0; i < n; i++)
    for (let j = 0; j <= i; j++) {
      let s = a[a0 + i * ai + j * aj];
      for (let k = 0; k < j; k++) s -= o[i * n + k] * o[j * n + k];
      o[i * n + j] = i === j ? Math.sqrt(s) : s / o[j * n + j];
    }
};

// Eigenvalues w, rising, and eigenvectors, the columns of v up to their signs, of a symmetric a
// (n, n), by Jacobi's rotations.
rt.eigh = (w, v, n, a, a0, ai, aj) => {
  const m = new Float64Array(n * n), u = m.slice();
  const turn = (x, p, q, step, c, s) => {
    for (let k = 0; k < n * step; k += step) {
      const y = x[p + k], z = x[q + k];
      x[p + k] = c * y - s * z;
      x[q + k] = s * y + c * z;
    }
  };
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) m[i * n + j] = a[a0 + i * ai + j * aj];
    u[i * n + i] = 1;
  }
  for (let sweep = 0, off = 1; off && sweep < 40; sweep++) {
    off = 0;
    for (let p = 0; p < n; p++)
      for (let q = 0; q < p; q++) {
        const g = m[p * n + q], x = m[p * n + p], y = m[q * n + q];
        if (g * g <= 1e-34 * Math.abs(x * y)) continue;
        off = 1;
        const h = (x - y) / (2 * g), t = (h < 0 ? -1 : 1) / (Math.abs(h) + Math.sqrt(h * h + 1));
        const c = 1 / Math.sqrt(t * t + 1), s = t * c;
        turn(m, q, p, n, c, s);
        turn(m, q * n, p * n, 1, c, s);
        turn(u, q * n, p * n, 1, c, s);
      }
  }
  [...w.keys()].sort((i, j) => m[i * n + i] - m[j * n + j]).forEach((from, to) => {
    w[to] = m[from * n + from];
    for (let k = 0; k < n; k++) v[k * n + to] = u[from * n + k];
  });
};

// o with L L' o = b, for L lower triangular (n, n).
rt.solve = (o, n, a, a0, ai, aj, b, b0, bi) => {
  for (let i = 0; i < n; i++) {
    let s = b[b0 + i * bi];
    for (let k = 0; k < i; k++) s -= a[a0 + i * ai + k * aj] * o[k];
    o[i] = s / a[a0 + i * (ai + aj)];
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) o[i] -= a[a0 + k * ai + i * aj] * o[k];
    o[i] /= a[a0 + i * (ai + aj)];
  }
};

// The quantile of the normal law by Newton's steps, which come from below; not for its far tails.
rt.ndtri = (p) => {
  if (p < 0.5) return -rt.ndtri(1 - p);
  for (let x = 0; ; ) {
    let area = 0;
    for (let term = x, k = 3; term > 1e-17; term *= x * x / k, k += 2) area += term;
    const step = (p - 0.5) * Math.sqrt(2 * Math.PI) * Math.exp(x * x / 2) - area;
    if (step <= 1e-15 * x) return x;
    x += step;
  }
};
