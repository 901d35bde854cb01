// In the page of one lab: every state, from each every slider, all sliders at their ends, and
// `random` settings of them all.
// Gives what went wrong, and the lines of theories that a state does not show.
async (random) => {
  const LONGEST = 200; // ms that the page may stand still
  const lab = document.querySelector("feature-lab"), { sliders, plots, phase, switch: law } = lab.config;
  const states = lab.config.states || [{ label: "Reset" }], faults = [], hidden = [];
  let tasks = [], short = false;

  // What is drawn matters here, not what is learned: after a slider has moved, runs are cut short.
  const call = lab.runner.call;
  lab.runner.call = (what, job) => call(what, short && job.kind === "run"
    ? { ...job, params: { ...job.params, steps: Math.min(job.params.steps, 2) } } : job);
  const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries()));
  observer.observe({ type: "longtask" });
  const pause = () => new Promise((go) => setTimeout(go, 4));
  const told = () => phase ? !lab.map.stale : !law || lab.law?.key === lab.lawKey();
  const done = () => lab.run.done && !lab.queued && told();

  // Makes a move and waits for its pictures. A busy machine is not a slow lab: what stood still is
  // made again, its map too.
  async function meet(what, move) {
    let longest = Infinity;
    for (let go = 0; go < 3 && longest > LONGEST; go++) {
      await pause();
      observer.takeRecords();
      tasks = [];
      if (go) lab.map.key = "";
      const from = performance.now();
      move();
      do await pause(); while (!done() && performance.now() - from < 10000);
      tasks.push(...observer.takeRecords());
      longest = Math.max(0, ...tasks.map((t) => t.duration));
    }
    if (longest > LONGEST) faults.push(`${what}: stands still for ${Math.round(longest)} ms`);
    if (!done()) faults.push(`${what}: never done`);
    if (phase && JSON.stringify(lab.data().cells).match(/^\[\]|null/)) faults.push(`${what}: no map`);
    const shown = lab.shadowRoot.innerHTML, at = shown.search(/NaN|Infinity|undefined/);
    if (at >= 0) faults.push(`${what}: draws ${shown.slice(at - 60, at + 20)}`);
  }

  function put(k) {
    lab.params = lab.config.states ? lab.state(k) : { ...lab.config.params };
    lab.place();
  }
  function slide({ name }, to) {
    const input = lab.$(`[name=${name}]`);
    input.value = to;
    input.dispatchEvent(new InputEvent("input", { bubbles: true }));
  }
  // A theory may leave the axes, not begin outside; on a log axis nothing lies on the frame.
  function look(label) {
    lab.panels.forEach((plot, k) => {
      if (plot.kind !== "plot") return;
      lab.view(k);
      const { top, height } = plot.f.box, off = plot.scale === "log" ? 3 : 0;
      const paths = lab.boxes[k].querySelectorAll('g path[stroke-dasharray="2 4"]');
      plot.curves.filter((c) => c.line === "theory").forEach((c, i) => {
        const y = Number(paths[i].getAttribute("d").match(/^M\S+ ([\d.-]+)/)?.[1]);
        if (!(y >= top + off && y <= top + height - off)) hidden.push(`${label}: ${c.label}`);
      });
    });
  }

  const map = () => phase && lab.view(lab.panels.length - 1);
  lab.answer();
  map();
  for (const [k, { label }] of states.entries()) {
    short = false;
    await meet(label, () => (lab.$(`[name=state][value="${k}"]`) || lab.$("[name=reset]")).click());
    look(label);
    map();
    short = true;
    for (const s of sliders) {
      await meet(`${label}, ${s.name}`, () => {
        put(k);
        const { value, max } = lab.$(`[name=${s.name}]`);
        slide(s, value === "0" ? max : 0);
      });
      if (faults.length) return { faults, hidden };
    }
  }
  short = false;
  for (const end of ["min", "max"]) // twice: the top of one may be another's
    await meet(`all at ${end}`, () => [...sliders, ...sliders].forEach((s) => slide(s, lab.$(`[name=${s.name}]`)[end])));
  let seed = 1;
  const chance = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let k = 0; k < random; k++)
    await meet(`random ${k}`, () => sliders.forEach((s) => slide(s, Math.round(chance() * lab.$(`[name=${s.name}]`).max))));
  return { faults, hidden };
}
