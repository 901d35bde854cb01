// Runs kernels and models in Node: reads {folder, scripts, calls} on stdin, writes JSON.
"use strict";
const fs = require("fs"), vm = require("vm"), path = require("path");
const input = JSON.parse(fs.readFileSync(0, "utf8"));
vm.runInThisContext(fs.readFileSync(path.join(input.folder, "engine.js"), "utf8"));
const engine = vm.runInThisContext("FeatureLabEngine()");
const models = {};
globalThis.FeatureLab = { model: (name, spec, define) => (models[name] = engine.model(name, spec, define)) };
for (const text of input.scripts) vm.runInThisContext(text);
const revive = (x) => (Array.isArray(x) ? Float64Array.from(x.flat(9)) : x);
const plain = (x) => (typeof x === "number" ? x : Array.from(x));
const safe = (k, v) => (typeof v === "number" && !Number.isFinite(v) ? String(v) : v);
const out = input.calls.map((call) => {
  try {
    if (call.what === "kernel") {
      const kernel = models[call.model].kernels[call.kernel];
      const buffers = kernel.buffers(engine.rt, call.sizes);
      let args = kernel.inputs.map((k) => revive(call.inputs[k])), result;
      for (let k = 0; k < (call.times || 1); k++) {
        result = kernel.run(engine.rt, call.sizes, buffers, ...args);
        args = kernel.inputs.map((name, i) => (result[name] === undefined ? args[i] : result[name]));
      }
      return Object.fromEntries(Object.entries(result).map(([k, v]) => [k, plain(v)]));
    }
    if (call.what === "stream") {
      const s = engine.stream(call.seed, call.use);
      return call.laws.map(([law, df]) => s[law](df));
    }
    if (call.what === "say") return engine.say(call.sentence, call.values);
    if (call.what === "ends") {
      const result = engine.simulateNow(models[call.model], call.params, { lastOnly: !call.at });
      const at = (call.at || [1]).map((share) => Math.round(share * (result.times.length - 1)));
      return call.at ? at.map((k) => engine.ends(result, call.params, k)) : engine.ends(result, call.params);
    }
    let result, ms = [];
    for (let k = 0; k < (call.times || 1); k++) {
      const started = performance.now();
      result = engine.simulateNow(models[call.model], call.params, call.options);
      ms.push(performance.now() - started);
    }
    return { ...result, ms };
  } catch (error) {
    return { error: String(error.message) };
  }
});
process.stdout.write(JSON.stringify(out, safe));
