// Loads a lab when it comes near the viewport. Until then, and if anything fails, the figure
// inside <feature-lab> stays as it is. Classic scripts only: they also load from file://.
(function () {
  "use strict";
  if (window.FeatureLab) return;
  var here = document.currentScript.src.match(/^(.*\/)[^/?]*(\?.*)?$/), loaded = {};
  function load(name) {
    return (loaded[name] = loaded[name] || new Promise(function (done, failed) {
      var script = document.createElement("script");
      script.src = here[1] + name + ".js" + (here[2] || "");
      script.onload = done;
      script.onerror = failed;
      document.head.append(script);
    }));
  }
  window.FeatureLab = {
    models: {},
    model: function (name, spec, define) { this.models[name] = { spec: spec, define: define }; },
  };
  var near = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      var lab = entry.target;
      if (!entry.isIntersecting) return;
      near.unobserve(lab);
      Promise.all(["engine", "lab", lab.getAttribute("model")].map(load))
        .then(function () { lab.start(); })
        .catch(function (error) { console.warn("This lab stays a figure:", error); });
    });
  }, { rootMargin: "300px" });
  function watch() { document.querySelectorAll("feature-lab").forEach(function (lab) { near.observe(lab); }); }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", watch);
  else watch();
})();
