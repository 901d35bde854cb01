// The engine of the live labs: one and the same function in the page, in its worker and in Node.
// It holds what the generated kernels call (rt), the random numbers (mirrored in Python by
// tools/labs/replay.py, draw for draw) and the loop that runs a model from its description.
"use strict";

function FeatureLabEngine() {
  const rt = {
    check(what, holds) {
      if (!holds) throw new RangeError("size check failed in " + what);
    },
    // An argument of a kernel: the right length, and never one of the buffers it will write.
    input(a, length, own) {
      if (a.length !== length) throw new RangeError("an input has " + a.length + " entries, not " + length);
      return own.includes(a) ? a.slice() : a;
    },
    pow(x, y) {
      if (y === 1) return x;
      if (y === 2) return x * x;
      if (y === 3) return x * x * x;
      if (y === 1.5) return x * Math.sqrt(x);
      if (y === 2.5) return x * x * Math.sqrt(x);
      return y === 0 ? 1 : Math.pow(x, y);
    },
    clamp(x, low, high) {
      const y = x < low ? low : x;
      return y > high ? high : y;
    },
    softplus(x, beta, threshold) {
      return x * beta > threshold ? x : Math.log1p(Math.exp(x * beta)) / beta;
    },
    dsoftplus(x, beta, threshold) {
      return x * beta > threshold ? 1 : 1 / (1 + Math.exp(-x * beta));
    },
    // o[o0 + i*n + j] = sum_k a[a0 + i*ai + k*ak] * b[b0 + k*bk + j*bj], in blocks of 2 x 4 that
    // stay in registers. A block over the edge does its last row or column again.
    mm(o, o0, m, n, p, a, a0, ai, ak, b, b0, bk, bj) {
      if (n === 1 && m > 1) return rt.mm(o, o0, 1, m, p, b, b0, bj, bk, a, a0, ak, ai);
      for (let i = 0; i < m; i += 2) {
        const i1 = i + 1 < m ? i + 1 : i, r0 = o0 + i * n, r1 = o0 + i1 * n;
        for (let j = 0; j < n; j += 4) {
          const j1 = j + 1 < n ? j + 1 : n - 1, j2 = j + 2 < n ? j + 2 : n - 1, j3 = j + 3 < n ? j + 3 : n - 1;
          let s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
          let x0 = a0 + i * ai, x1 = a0 + i1 * ai;
          let y0 = b0 + j * bj, y1 = b0 + j1 * bj, y2 = b0 + j2 * bj, y3 = b0 + j3 * bj;
          for (let k = 0; k < p; k++) {
            const u0 = a[x0], u1 = a[x1], v0 = b[y0], v1 = b[y1], v2 = b[y2], v3 = b[y3];
            s0 += u0 * v0; s1 += u0 * v1; s2 += u0 * v2; s3 += u0 * v3;
            t0 += u1 * v0; t1 += u1 * v1; t2 += u1 * v2; t3 += u1 * v3;
            x0 += ak; x1 += ak; y0 += bk; y1 += bk; y2 += bk; y3 += bk;
          }
          o[r0 + j] = s0; o[r0 + j1] = s1; o[r0 + j2] = s2; o[r0 + j3] = s3;
          o[r1 + j] = t0; o[r1 + j1] = t1; o[r1 + j2] = t2; o[r1 + j3] = t3;
        }
      }
    },
  };

  // Random numbers: sfc32, one stream for each array, so that no array depends on another's size.
  function stream(seed, use) {
    let a = seed >>> 0, b = use >>> 0, c = 0x9e3779b9 | 0, count = 1, spare = null;
    function bits() {
      const t = (((a + b) | 0) + count) | 0;
      count = (count + 1) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = (((c << 21) | (c >>> 11)) + t) | 0;
      return t >>> 0;
    }
    for (let k = 0; k < 16; k++) bits();
    const uniform = () => (bits() + 0.5) / 4294967296;
    // Box and Muller, in pairs.
    function normal() {
      if (spare !== null) {
        const z = spare;
        spare = null;
        return z;
      }
      const r = Math.sqrt(-2 * Math.log(uniform())), phi = 2 * Math.PI * uniform();
      spare = r * Math.sin(phi);
      return r * Math.cos(phi);
    }
    // chi with df >= 1 degrees of freedom: the root of twice a gamma (Marsaglia and Tsang, exact).
    function chi(df) {
      const shape = df / 2, lift = shape < 1 ? Math.pow(uniform(), 1 / shape) : 1;
      const d = (shape < 1 ? shape + 1 : shape) - 1 / 3, c = 1 / Math.sqrt(9 * d);
      for (;;) {
        const x = normal(), t = c * x, v = (1 + t) * (1 + t) * (1 + t);
        if (t <= -1) continue;
        const u = uniform();
        if (u < 1 - 0.0331 * x * x * x * x ||
            Math.log(u) < 0.5 * x * x + d * (3 * Math.log1p(t) - t * (3 + t * (3 + t))))
          return Math.sqrt(2 * d * v * lift);
      }
    }
    return { bits, uniform, normal, chi };
  }

  // {"n": 1, "1": -1} stands for n - 1, and "d^kappa" for the whole number nearest to that power.
  function linear(form, values) {
    const value = (name) => {
      const [base, power] = name.split("^");
      if (power) return Math.floor(Math.pow(values[base], values[power]) + 0.5);
      return name === "1" ? 1 : values[name];
    };
    let sum = 0;
    for (const name in form) sum += form[name] * value(name);
    return sum;
  }

  function draw(spec, values, random) {
    const shape = spec.shape.map((s) => linear(values.sizes[s], values));
    const out = new Float64Array(shape.reduce((a, b) => a * b, 1));
    const df = spec.df ? linear(spec.df, values) : 0;
    for (let i = 0; i < out.length; i++) {
      const row = Math.floor(i / shape[1]), column = i - row * shape[1];
      if (spec.law === "chi") out[i] = random.chi(df - i);
      else if (spec.law !== "lower" || column < row) out[i] = random[spec.law === "uniform" ? "uniform" : "normal"]();
    }
    return out;
  }

  // A model: its description, and its kernels as functions of the sizes.
  function model(name, spec, define) {
    const kernels = {};
    define((kernel, inputs, plan, run) => (kernels[kernel] = {
      inputs,
      buffers(rt, sizes) {
        for (const s in sizes) rt.check(`${kernel}: ${s} >= 2`, sizes[s] >= 2);
        const [asked, made] = plan(rt, sizes);
        return { asked, own: made.map((length) => new Float64Array(length)) };
      },
      run: (rt, sizes, { asked, own }, ...given) =>
        run(rt, sizes, own, ...given.map((a, k) => (asked[k] ? rt.input(a, asked[k], own) : a))),
    }), rt);
    return { name, spec, kernels };
  }

  // A run, as a generator: it pauses (yields the share done) whenever due() says so.
  function* simulate({ spec, kernels }, params, { due = () => false, lastOnly = false, records = 60 } = {}) {
    const env = { ...params };
    const values = { ...params, sizes: spec.sizes };
    const sizes = {};
    for (const s in spec.sizes) sizes[s] = linear(spec.sizes[s], values);
    const anew = []; // what draws an array again, from where its stream stands
    Object.keys(spec.draws).forEach((name, use) => {
      const one = spec.draws[name], random = stream(params.seed, use);
      const next = () => { env[name] = draw(one, values, random); };
      next();
      if (one.anew) anew.push(next);
    });
    yield 0;
    const made = {};
    function run(name) {
      const k = kernels[name];
      made[name] = made[name] || k.buffers(rt, sizes);
      return k.run(rt, sizes, made[name], ...k.inputs.map((x) => {
        if (env[x] === undefined) throw new Error(name + " needs " + x + ", which nothing gives");
        return env[x];
      }));
    }
    function update(name) {
      const out = run(name);
      for (const k in out) {
        if (typeof out[k] === "number") env[k] = out[k];
        else if (env[k] && env[k].length === out[k].length) env[k].set(out[k]);
        else env[k] = out[k].slice();
      }
    }
    spec.init.forEach(update);
    const T = params.steps, times = [];
    for (let k = lastOnly ? records : 0; k <= records; k++) {
      const t = Math.floor((k * T) / records);
      if (t !== times[times.length - 1]) times.push(t);
    }
    const result = { times: [], curves: {} };
    for (let t = 0, next = 0; t <= T; t++) {
      if (t === times[next]) {
        next++;
        result.times.push(t);
        for (const name of spec.measure) {
          const out = run(name);
          for (const k in out)
            (result.curves[k] = result.curves[k] || []).push(
              typeof out[k] === "number" ? out[k] : Array.from(out[k]));
        }
      }
      if (t < T) {
        spec.step.forEach(update);
        anew.forEach((next) => next());
      }
      if (due()) yield { share: t / T, result };
    }
    result.values = Object.fromEntries(Object.entries(env).filter(([, v]) => typeof v === "number"));
    return result;
  }

  function simulateNow(m, params, options) {
    const it = simulate(m, params, options);
    for (;;) {
      const { done, value } = it.next();
      if (done) return value;
    }
  }

  // The numbers at a record of a run, or at its end.
  function ends({ values, curves, times }, params, at = times.length - 1) {
    const last = { step: times[at] };
    for (const k in curves) if (!Array.isArray(curves[k][0])) last[k] = curves[k][at];
    return { ...values, ...last, ...params };
  }

  const superscript = (k) => String(k).replace(/./g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] || "⁻");

  // A number as a reader writes it: 0.0123, 2000, 3.2×10⁹.
  function format(v, digits = 3) {
    if (v === undefined || Number.isNaN(v)) return "–";
    if (!Number.isFinite(v)) return v > 0 ? "∞" : "−∞";
    const size = Math.abs(v);
    if (size !== 0 && (size >= 1e5 || size < 1e-3)) {
      let [, m, e] = v.toExponential(Math.min(digits - 1, 2)).match(/^(.*)e(.*)$/);
      m = String(Number(m)).replace("-", "−");
      return (m === "1" ? "" : m + "×") + "10" + superscript(Number(e));
    }
    return String(Number.isInteger(v) ? v : Number(v.toPrecision(digits))).replace("-", "−");
  }

  // Parts of text; of a part with cases the first whose comparisons all hold is said. Those are
  // "train_error > 0.1 and signal <= 2*spread"; "not" before one also holds where it is not a number.
  const COMPARE = { "<": (x, y) => x < y, "<=": (x, y) => x <= y, "=": (x, y) => x === y, ">=": (x, y) => x >= y, ">": (x, y) => x > y };
  function holds(text, values) {
    const number = (x) => x.split("*").reduce((v, f) => v * (f in values ? values[f] : Number(f)), 1);
    return text.split(" and ").every((one) => {
      const [x, sign, y] = one.replace(/^not /, "").split(" ");
      return COMPARE[sign](number(x), number(y)) !== one.startsWith("not ");
    });
  }

  // None of a few hundred fresh samples is not none of all.
  const share = (x, v) => (x.startsWith("test_error") && v < 0.001 ? "less than 0.1" : format(100 * v));
  function say(parts, values) {
    const words = (part) => typeof part === "string" ? part : (part.find((c) => !c.if || holds(c.if, values)) || { say: "" }).say;
    return parts.map(words).filter(Boolean).join(" ").replace(/\{(\w+)(:%)?\}/g, (_, x, percent) =>
      percent ? share(x, values[x]) + "\u202f%" : format(values[x]));
  }

  // Runs jobs one after the other in slices; a new job of a kind replaces the old one.
  function runner(post, slice) {
    const models = {}, jobs = {};
    let busy = false;
    const pause = () => new Promise((go) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => { port1.close(); go(); };
      port2.postMessage(0);
    });
    async function work(job) {
      const current = () => jobs[job.kind] === job && (job.kind === "run" || !jobs.run);
      const cells = job.cells || [{}];
      const started = performance.now();
      let spent = 0;
      for (; job.at < cells.length; job.at++) {
        let deadline = performance.now() + slice, shown = started;
        const options = { due: () => performance.now() > deadline, lastOnly: job.kind !== "run", records: job.records };
        const it = simulate(models[job.model], { ...job.params, ...cells[job.at] }, options);
        for (;;) {
          const from = performance.now();
          const { done, value } = it.next();
          spent += performance.now() - from;
          if (done) {
            if (!current()) return;
            post({ kind: job.kind, id: job.id, done: true, at: job.at, result: value, ms: spent });
            break;
          }
          if (job.kind === "run" && performance.now() - shown > 150 && value.result) {
            shown = performance.now();
            post({ kind: "run", id: job.id, done: false, share: value.share, result: value.result });
          }
          await pause();
          if (!current()) return;
          deadline = performance.now() + slice;
        }
      }
      if (jobs[job.kind] === job) delete jobs[job.kind];
    }
    async function loop() {
      if (busy) return;
      busy = true;
      while (jobs.run || jobs.cells) {
        const job = jobs.run || jobs.cells;
        try {
          await work(job);
        } catch (error) {
          if (jobs[job.kind] === job) delete jobs[job.kind];
          post({ kind: job.kind, id: job.id, error: String(error && error.message || error) });
        }
      }
      busy = false;
    }
    return {
      define(name, spec, define) { models[name] = model(name, spec, define); },
      start(job) {
        jobs[job.kind] = { ...job, at: 0 };
        loop();
      },
      stop(kind) { delete jobs[kind]; },
    };
  }

  return { rt, stream, linear, draw, model, simulate, simulateNow, runner, ends, format, holds, say };
}
