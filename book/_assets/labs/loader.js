// Loads a lab when it comes near the viewport. Until then, and if anything fails, the figure
// inside <feature-lab> stays as it is. Classic scripts only: they also load from file://.
(function () {
  "use strict";
  if (window.FeatureLab) return;
  var here = document.currentScript.src.match(/^(.*\/)[^/?]*(\?.*)?$/), loaded = {}, moved = false;
  var style = document.createElement("style");
  // A lab is taller than its figure: the place is kept, and what it pushes is not followed.
  // The theme's button would cover the sliders at the foot of the window.
  style.textContent = "feature-lab{display:block;scroll-margin-top:-.6rem}feature-lab:not([ready])" +
    "{min-height:var(--room,48rem);overflow-anchor:none}feature-lab[asks]:not([ready]){min-height:20rem}@media(max-width:600px){feature-lab[asks]:not([ready]){min-height:34rem}}feature-lab[asks]:not([ready])>figure{display:none}[data-lab] #pst-back-to-top{display:none!important}";
  document.head.append(style);
  function file(name) { return here[1] + name + (here[2] || ""); }
  function load(name) {
    return (loaded[name] = loaded[name] || new Promise(function (done, failed) {
      var script = document.createElement("script");
      script.async = false; // one after the other: each uses the one before
      script.src = file(name + ".js");
      script.onload = done;
      script.onerror = failed;
      document.head.append(script);
    }));
  }
  function isAim(lab) { return location.hash === "#" + lab.id; }
  function begin(lab) {
    near.unobserve(lab);
    Promise.all(["lab", lab.getAttribute("model")].map(load))
      .then(function () { lab.start(); })
      .catch(function (error) {
        lab.setAttribute("ready", "");
        console.warn("This lab stays a figure:", error);
      });
  }
  // A link to a lab ends there: once it is drawn and again when all has loaded, unless the reader moved.
  function land(lab) {
    lab.setAttribute("ready", "");
    if (!moved && isAim(lab)) lab.scrollIntoView({ behavior: "instant" });
  }
  window.FeatureLab = {
    models: {},
    model: function (name, spec, define) { this.models[name] = { spec: spec, define: define }; },
    land: land,
    file: file,
  };
  ["wheel", "touchstart", "keydown", "pointerdown"].forEach(function (kind) {
    addEventListener(kind, function () { moved = true; }, { once: true, passive: true });
  });
  var near = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) { if (entry.isIntersecting) begin(entry.target); });
  }, { rootMargin: "300px" });
  function watch() {
    document.querySelectorAll("feature-lab").forEach(function (lab) {
      near.observe(lab);
      new IntersectionObserver(function (seen) {
        document.documentElement.toggleAttribute("data-lab", seen.pop().isIntersecting);
      }).observe(lab);
      if (isAim(lab)) begin(lab);
      addEventListener("load", function () { if (lab.shadowRoot) land(lab); });
    });
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", watch);
  else watch();
})();
