"use strict";
(function () {
  var root = document.documentElement;
  var button = document.getElementById("theme");
  var dark = window.matchMedia("(prefers-color-scheme: dark)");

  function stored(value) {
    try {
      if (value === undefined) { return localStorage.getItem("ppt_gpu theme"); }
      localStorage.setItem("ppt_gpu theme", value);
    } catch (error) { /* a page from a file may keep nothing */ }
    return null;
  }

  function isDark() {
    var theme = root.getAttribute("data-theme");
    return theme ? theme === "dark" : dark.matches;
  }

  function label() {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", "Switch to the " + (isDark() ? "light" : "dark") + " theme");
  }

  var kept = stored();
  if (kept === "dark" || kept === "light") { root.setAttribute("data-theme", kept); }
  button.hidden = false;
  button.addEventListener("click", function () {
    var next = isDark() ? "light" : "dark";
    root.setAttribute("data-theme", next);
    stored(next);
    label();
  });
  dark.addEventListener("change", label);
  label();

  document.querySelectorAll("[data-filter]").forEach(function (legend) {
    var figure = document.getElementById(legend.getAttribute("data-filter"));
    legend.hidden = false;
    legend.addEventListener("click", function (event) {
      var chosen = event.target.closest("button");
      if (!chosen) { return; }
      var on = chosen.getAttribute("aria-pressed") !== "true";
      chosen.setAttribute("aria-pressed", String(on));
      var reasons = Array.from(legend.querySelectorAll("[aria-pressed=true]")).map(function (pressed) {
        return pressed.getAttribute("data-reason");
      });
      figure.classList.toggle("dim", reasons.length > 0);
      figure.querySelectorAll("path[data-reason]").forEach(function (path) {
        path.classList.toggle("on", reasons.indexOf(path.getAttribute("data-reason")) >= 0);
      });
    });
  });
})();
