// <feature-lab>: a run of the real dynamics in a worker, drawn while it trains: two panels, a time
// slider, what is said of it, sliders. One component for every lab: the page's JSON says what to show
// (CONTRIBUTING.md has the fields).
"use strict";
(function () {
  const { html, clip, picture, range, drawPlot, INSIDE, mark, probesOf, lawOf, cellsOf, drawPhase } = window.FeatureLab;
  const { format, say, ends, holds } = FeatureLabEngine();
  const maths = (text) => html(text).replace(/\^([\w.]*\w)/g, "<sup>$1</sup>");
  // Words wear the colours of what they name: learning, or harm.
  const coloured = (text) => maths(text).replace(/\b(?:(signals?)|(noise|errors?|loss(?:es)?|memory|memories))\b/gi, (word, learned) => `<span class="${learned ? "learning" : "harm"}">${word}</span>`);

  const tall = (width) => clip(Math.round(width * 0.57), 176, 210);

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
      const linked = this.linked(location.search), { predict, data, plots, scrub, phase, switch: law } = this.config;
      this.at = 1;
      this.panels = [...[data && { kind: "data", show: "rows", ...data }, scrub && { kind: "inside", ...scrub }].filter((p) => p && p.show), ...plots.map((p, of) => ({ kind: "plot", of, ...p })), ...(phase ? [{ kind: "map", ...phase }] : [])];
      this.front = predict ? this.panels.findIndex((p) => p.kind === "plot") : this.panels.length - 1; // the panel in view where there is room for one
      this.open = [Math.max(0, this.panels.findIndex((p) => p.kind === "inside")), this.front]; // and where there is room for two
      this.asking = predict && !Object.keys(linked).length;
      this.params = { ...this.config.params, ...(this.asking ? predict.set : linked) };
      this.run = { id: 0, done: false, result: null };
      this.map = { id: 0, found: [] };
      this.build();
      this.runner = makeRunner(this.getAttribute("model"), (m) => this.hear(m));
      if (law) this.mapper = makeRunner(this.getAttribute("model"), (m) => this.hear(m)); // no run waits for a map
      this.dark();
      this.watch();
      this.train();
      document.addEventListener("click", (e) => this.follow(e));
    }

    // A link of the page that sets the lab so: no new page, and Back leads back to the text.
    follow(e) {
      const link = e.target.closest && e.target.closest("a.set-lab");
      if (!link || e.ctrlKey || e.metaKey || !this.isConnected) return;
      e.preventDefault();
      this.asking = false;
      this.params = { ...this.config.params, ...this.linked(link.search) };
      this.set();
      history.pushState(null, "", "#" + this.id);
      this.scrollIntoView({ behavior: "instant" });
      this.$(".controls input").focus({ preventScroll: true });
    }

    build() {
      const c = this.config, { predict } = c, root = this.attachShadow({ mode: "open" });
      const slider = (s) => `<label><span>${html(s.label)}</span><input type="range" name="${s.name}" min="0" max="${axis(s, c.params).count}" step="1"><small aria-hidden="true"></small><output aria-hidden="true"></output>${s.names ? `<em aria-hidden="true">${s.names.map((n) => `<span>${html(n)}</span>`).join("")}</em>` : ""}</label>`;
      const rest = this.sliders.slice(3), open = rest.some((x) => this.params[x.name] !== c.params[x.name]);
      const ring = ({ x, y }) => `<span class="ring" tabindex="0" role="slider" aria-label="Ring on the map: left and right change ${html(x.label)}, up and down ${html(y.label)}" hidden></span>`;
      const panel = (p) => `<div class="panel ${p.kind}"><h3>${html(p.title)}</h3><ul></ul><div class="pad"><div></div>${p.kind === "map" ? ring(p) : ""}</div></div>`;
      root.innerHTML = `<link rel="stylesheet" href="${window.FeatureLab.file("lab.css")}"><section class="lab" aria-label="${html(c.title)}" hidden><h2>${html(c.title)} <a href="${html(c.explained || "#why-it-is-true")}">why?</a></h2>
${predict ? `<div class="ask"><p id="ask">${maths(predict.ask)}</p><div class="bar" role="group" aria-labelledby="ask">${predict.answers.map((a, k) => `<button name="answer" value="${k}">${html(a.say)}</button>`).join("")}<button name="show">Show me</button></div></div>` : ""}
${c.states ? `<div class="bar states" role="group" aria-label="States to start from">${c.states.map((x, k) => `<button name="state" value="${k}">${html(x.label)}</button>`).join("")}</div>` : ""}
<div class="bar views" role="group" aria-label="Pictures">${this.panels.map((p, k) => `<button name="view" value="${k}">${html(p.tab)}</button>`).join("")}</div>
<div class="panels">${this.panels.map(panel).join("")}</div>
<div class="time"><button name="play" aria-label="Play the training">▶</button><button name="step" aria-label="One record on">▸|</button><input type="range" name="time" min="0" aria-label="Time of training"><output aria-hidden="true"></output></div>
<div class="foot"><div class="controls">${this.sliders.slice(0, 3).map(slider).join("")}</div><div><p class="verdict" role="status" hidden></p><p class="says" role="status"></p></div></div>
${c.states ? '<p class="guide" aria-live="polite"></p>' : ""}
${rest.length ? `<details class="more"${open ? " open" : ""}><summary>More: ${html(rest.map((x) => x.label).join(", "))}</summary><div class="rest">${rest.map(slider).join("")}</div></details>` : ""}
<div class="bar"><button name="pin" aria-pressed="false">Pin this run</button><button name="seed">New seed</button><button name="reset">Reset</button><button name="link">Copy link</button><button name="csv">Download CSV</button><p class="note"></p></div>
<details class="values"><summary>Table of values</summary><div class="scroll" tabindex="0" role="region" aria-label="Table of values"></div></details>
</section><slot></slot>`;
      this.$ = (q) => root.querySelector(q);
      this.boxes = [...root.querySelectorAll(".panel")];
      const link = this.$("link"), press = (name, act) => root.querySelectorAll(`[name=${name}]`).forEach((b) => (b.onclick = () => act(Number(b.value))));
      link.onload = link.onerror = () => { this.$(".lab").hidden = false; };
      this.$(".lab").addEventListener("input", (e) => {
        if (e.target.name === "time") this.seek(e.target.value / e.target.max);
        const s = this.sliders.find((x) => x.name === e.target.name);
        if (!s) return;
        this.params[s.name] = axis(s, this.params).value(Number(e.target.value));
        this.set(s);
      });
      press("state", (k) => { this.params = this.state(k); this.set(); });
      press("answer", (k) => this.answer(k));
      press("show", () => this.answer());
      press("view", (k) => this.view(k));
      press("play", () => (this.film ? this.pause() : this.play()));
      press("step", () => this.seek(this.at < 1 ? this.at + 1 / this.last() : 0));
      press("pin", () => this.pin());
      press("seed", () => { this.params.seed++; this.set(); });
      press("reset", () => { this.params = { ...c.params }; this.set(); });
      press("link", () => this.copy());
      press("csv", () => this.csv());
      this.$(".values").ontoggle = () => this.table();
      this.panels.forEach((p, k) => {
        const box = this.boxes[k];
        if (p.kind === "map") this.grip(p);
        if (p.kind !== "plot") return;
        const move = (e) => e.buttons && p.f && this.seek(p.f.share(e.clientX - box.getBoundingClientRect().left));
        box.onpointerdown = (e) => { if (!e.button && e.target.closest("svg[role]")) { box.setPointerCapture(e.pointerId); move(e); } };
        box.onpointermove = (e) => { if (box.hasPointerCapture(e.pointerId)) move(e); };
      });
      this.place();
    }

    // Brings a panel into view: on a phone in place of the one there, else of the older of two.
    view(k) {
      if (!this.open.includes(k)) this.open = [this.front, k].sort((a, b) => a - b);
      this.front = k;
      this.draw();
      this.chart();
    }

    // The map is trained when somebody looks.
    chart() {
      if (this.map.stale && this.law && this.law.key === this.lawKey()) this.cells();
    }

    // Keeps this run to compare others with, or lets it go.
    pin() {
      this.pinned = this.pinned ? null : this.run.done && { result: this.run.result, params: this.run.params };
      this.ghost = this.pinned || null;
      this.$("[name=pin]").setAttribute("aria-pressed", !!this.pinned);
      this.note();
      this.draw();
    }

    // An answer, or none, shows the lab; what is right is read off the run (verdict).
    answer(k) {
      const first = this.asking;
      this.asking = false;
      if (first) this.said = k;
      this.show();
      this.verdict();
      this.width = 0; // two panels stand where one did
      this.draw();
      this.begin();
      if (first) this.$(".controls input").focus({ preventScroll: true }); // the buttons are gone
    }

    // What was answered, judged by the run, in place of what is said of it.
    verdict() {
      const { predict } = this.config, { said, run } = this;
      if (!this.judged() || !run.done) return;
      const v = ends(run.result, run.params), right = predict.answers.findIndex((a) => !a.if || holds(a.if, v));
      this.$(".verdict").innerHTML = coloured((said === right ? "You were right. " : `No: “${predict.answers[right].say}” is right. `) + say(predict.why, v));
    }

    last() {
      return this.run.result.times.length - 1;
    }

    // The moment that is shown, as a share of the training.
    move(share) {
      this.at = share > 1 - 1e-9 ? 1 : Math.max(share, 0);
      this.draw();
      this.tell();
    }

    seek(share) {
      this.pause();
      this.move(share);
    }

    pause() {
      clearTimeout(this.film);
      this.film = 0;
      const play = this.$("[name=play]");
      [play.textContent, play.ariaLabel] = ["▶", "Play the training"];
    }

    play() {
      const count = this.last(), from = this.at < 1 ? Math.round(this.at * count) : 0;
      const go = (k) => {
        if (k >= count) this.seek(1);
        else {
          this.film = setTimeout(() => go(k + 1), clip(3000 / count, 50, 700));
          this.move(k / count);
        }
      };
      const play = this.$("[name=play]");
      [play.textContent, play.ariaLabel] = ["❚❚", "Pause"];
      go(from);
    }

    // The first run that a reader sees draws itself, unless the reader wants no motion.
    begin() {
      if (this.begun || this.asking || !this.run.done || !this.inView || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
      this.begun = true;
      this.play();
    }

    // The ring on the map: dragged, moved by arrows, or called by a click or tap.
    grip({ x, y }) {
      const pad = this.$(".map .pad"), ring = this.$(".ring");
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
      if (predict) this.$(".ask").hidden = !this.asking;
      this.choose();
      if (states.length) this.$(".guide").innerHTML = on < 0 ? "" : maths(states[on].says);
      for (const s of this.sliders) {
        const input = this.$(`[name=${s.name}]`), v = this.params[s.name], text = s.names ? s.names[v - s.min] : format(v) + (s.unit || "");
        const A = axis(s, this.params), marks = this.marks(s), labels = marks.map((m) => m[1]).join(", ");
        input.parentNode.querySelectorAll("i").forEach((i) => i.remove());
        for (const [v] of marks) input.insertAdjacentHTML("afterend", `<i style="--at: ${(A.position(v) / A.count).toFixed(4)}"></i>`);
        input.parentNode.querySelector("small").textContent = labels && (s.marks ? "▾ " : "▾ switch ") + labels;
        input.parentNode.querySelector("output").textContent = text;
        input.setAttribute("aria-valuetext", text + (labels && `; ${s.marks ? "marked" : "predicted switch"}: ${labels}`));
      }
    }

    // Whether the run is the one that was asked about, and an answer was given.
    judged() {
      const { predict, params } = this.config;
      return predict && this.said !== undefined && Object.entries({ ...params, ...predict.set }).every(([name, v]) => v === this.params[name]);
    }

    // The verdict, or what is said: at a moment that the reader holds, what is true then.
    choose() {
      const judged = this.judged() && (this.at === 1 || !!this.film);
      this.$(".verdict").hidden = !judged;
      this.$(".says").hidden = judged;
    }

    watch() {
      this.resize = new ResizeObserver(() => {
        const drawn = this.width;
        this.width = 0;
        if (!this.$(".lab").hidden && this.wide() === drawn) return;
        this.draw();
        this.chart();
      });
      this.resize.observe(this.$(".panels"));
      this.watcher = new IntersectionObserver((all) => {
        this.inView = all.pop().isIntersecting;
        this.begin();
      }, { threshold: 0.6 });
      this.watcher.observe(this.$(".panels"));
      const theme = () => this.dark();
      this.theme = new MutationObserver(theme);
      this.theme.observe(document.documentElement, { attributeFilter: ["data-theme", "data-mode"] });
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
    }

    disconnectedCallback() {
      if (!this.runner) return;
      this.pause();
      this.runner.close();
      if (this.mapper) this.mapper.close();
      this.resize.disconnect();
      this.watcher.disconnect();
      this.theme.disconnect();
    }

    dark() {
      const theme = document.documentElement.dataset.theme;
      const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      this.toggleAttribute("dark", dark);
    }

    train() {
      const now = performance.now();
      if (this.film) this.seek(1);
      if (this.run.done && !this.pinned && !(now - this.changed < 700)) this.ghost = { result: this.run.result, params: this.run.params }; // what a change begins from
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
      this.mapper.call("stop", "cells");
      clearTimeout(this.mapTimer);
      const known = this.law && this.law.key === this.lawKey();
      this.mapTimer = setTimeout(() => (known ? this.cells() : this.fill(probesOf(w, this.map.params))), this.law ? 300 : 0);
    }

    fill(cells) {
      this.mapper.call("start", { kind: "cells", id: this.map.id, model: this.getAttribute("model"), params: this.map.params, cells });
    }

    cells() {
      const { map, config: { phase } } = this;
      if (!phase || this.$(".map").hidden) return; // nobody looks
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
        this.frame = this.frame || requestAnimationFrame(() => { this.frame = 0; this.drawMap(); });
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
      this.note();
      this.table();
      this.verdict();
      if (this.queued) {
        this.next();
        return;
      }
      this.begin();
      clearTimeout(this.speech);
      this.speech = setTimeout(() => this.tell(), this.spoken ? 400 : 0);
      this.spoken = true;
    }

    // What was trained, and what the pale run is: its settings where they differ.
    note() {
      const { ghost, run: { done, params: p, ms } } = this;
      if (!done) return;
      const other = ghost && this.sliders.filter((s) => ghost.params[s.name] !== p[s.name])
        .map((s) => `${s.label} = ${s.names ? s.names[ghost.params[s.name] - s.min] : format(ghost.params[s.name])}`);
      if (ghost && ghost.params.seed !== p.seed) other.push("seed " + ghost.params.seed);
      const pale = ghost ? ` Pale: ${this.pinned ? "the pinned run" : "the run before"}${other.length ? ", " + other.join(", ") : ""}.` : "";
      this.$(".bar .note").textContent = `Seed ${p.seed}; trained in your browser in ${format(Math.round(ms))} ms.${pale}`;
    }

    sentence() {
      return say(this.config.sentence, ends(this.run.result, this.run.params));
    }

    // Of the moment that is shown, or of the end of the run. A film is not read aloud.
    tell() {
      const { scrub } = this.config, says = this.$(".says");
      this.choose();
      says.ariaLive = this.film ? "off" : "polite";
      says.innerHTML = coloured(scrub && this.at < 1 ? this.moment() : this.sentence());
    }

    moment(now = this.now()) {
      return say(this.config.scrub.sentence, ends(this.run.result, this.run.params, now));
    }

    now() {
      return Math.round(this.at * this.last());
    }

    // The width of a panel, read once a size: two stand side by side where there is room.
    wide() {
      if (!this.width) {
        const panels = this.$(".panels"), all = panels.clientWidth;
        this.two = all >= 560 && this.panels.length > 1;
        panels.classList.toggle("two", this.two);
        this.width = Math.max(240, Math.floor(this.two ? (all - 24) / 2 : all));
      }
      return this.width;
    }

    draw() {
      const { result } = this.run;
      if (!result || this.$(".lab").hidden) return;
      const width = this.wide(), high = this.asking ? 140 : tall(width), now = this.now(), { plots } = this.config, ranges = plots.map((p) => range(p, result));
      const seen = (k) => (this.asking ? !k && this.panels[0].show : this.two ? this.open.includes(k) : this.front === k);
      this.panels.forEach((p, k) => {
        const box = this.boxes[k];
        box.hidden = !seen(k);
        this.$(`[name=view][value="${k}"]`).setAttribute("aria-pressed", seen(k));
        if (box.hidden || p.kind === "map") return;
        let legend, svg;
        if (p.kind === "plot") {
          const all = ranges.filter((_, i) => i === p.of || (p.group && plots[i].group === p.group));
          const span = [Math.min(...all.map((r) => r[0])), Math.max(...all.map((r) => r[1]))];
          ({ f: p.f, legend, svg } = drawPlot(p, result, this.ghost && this.ghost.result, span, width, high, "clip" + p.of, now));
        } else [legend, svg] = this.drawInside(p, this.asking ? -1 : now, width, high);
        box.querySelector("ul").innerHTML = legend;
        box.querySelector(".pad > div").innerHTML = svg;
      });
      this.drawTime(now);
      this.drawMap(width);
      if (!this.landed) window.FeatureLab.land(this);
      this.landed = true;
    }

    drawInside(panel, now, width, height) {
      const { show, curves = panel.cells || [], title, alt, note } = panel, { result, params } = this.run, notes = note ? [note] : [];
      const svg = INSIDE[show](panel, (key) => result.curves[key], width, height, params)(now, notes);
      const swatch = (c) => `<li>${mark(`<rect y="3" width="22" height="8" fill="var(--${c.color})"/>`)}${html(c.label.replace(/{(\w+)}/g, (_, k) => format(params[k])))}</li>`;
      const shown = curves.filter((c, k) => show !== "disc" && c.color && curves.findIndex((o) => o.label === c.label) === k);
      return [shown.map(swatch).join("") + notes.map((n) => `<li>${n}</li>`).join(""), picture(title + ": " + (alt || (now < 0 ? "before training" : this.moment(now))), width, height, svg)];
    }

    drawTime(now) {
      const time = this.$("[name=time]"), [{ x }] = this.config.plots, { times, curves } = this.run.result;
      time.max = this.last();
      time.value = now;
      const text = x && x.label !== "step" ? (x.sign || "n") + " = " + format(curves[x.key][now]) : "step " + format(times[now]);
      this.$(".time output").textContent = text;
      time.setAttribute("aria-valuetext", this.config.scrub ? this.moment() : text);
    }

    drawMap(width = this.wide()) {
      const { map, params: p, config: { phase, switch: w } } = this, ring = this.$(".ring");
      const box = ring && ring.closest(".panel"), high = tall(width);
      if (!ring || box.hidden || this.$(".lab").hidden) return;
      this.$(".map .pad").style.minHeight = high + "px";
      if (!map.axes) return;
      const { x, y } = map.axes, boundary = (v) => this.law.at(y.name, { ...p, [x.name]: v });
      const { f, svg, legend } = drawPhase(phase, map, this.speaks() && boundary, w.label, width, high);
      map.f = f;
      const at = [clip(p[x.name], x.min, x.max), clip(p[y.name], y.min, y.max)];
      const off = [x, y].filter((A, k) => Math.abs(p[A.name] / at[k] - 1) > 1e-9).map((A) => `${A.label} = ${format(p[A.name])}`);
      this.$(".map ul").innerHTML = legend + `<li>${mark('<circle cx="11" cy="7" r="5" fill="var(--back)" stroke="var(--ink)" stroke-width="2.5"/>')}you${off.length ? `, off the map: ${html(off.join(", "))}` : ": drag the ring"}</li>`;
      this.$(".map .pad > div").innerHTML = svg;
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

    linked(search) {
      const out = {}, all = { ...this.config.params }, text = new URLSearchParams(search).get(this.id) || "";
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
