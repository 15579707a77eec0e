// Light and dark: the system's, or what the reader chose; and the colours of the style sheet for charts.
"use strict";

const root = document.documentElement;
root.classList.add("scripted");

const stored = {
  get() { try { return localStorage.getItem("ncttt-theme"); } catch { return null; } },
  set(theme) { try { localStorage.setItem("ncttt-theme", theme); } catch { /* a browser may forbid it */ } },
};

const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = () => root.dataset.theme || (dark.matches ? "dark" : "light");
if (["light", "dark"].includes(stored.get())) root.dataset.theme = stored.get();

// A colour by its name in the style sheet, as charts want it.
function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function setUpTheme(changed) {
  const button = document.getElementById("theme");
  const other = () => (theme() === "dark" ? "light" : "dark");
  const tell = () => {
    button.textContent = other() === "dark" ? "Dark" : "Light";
    button.title = `Show it ${other()}`;
    changed();
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = other();
    stored.set(theme());
    tell();
  });
  dark.addEventListener("change", tell);
  tell();
}
