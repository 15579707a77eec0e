// Beside the charts: the last images with both predictions, events, and versions to roll back to.
"use strict";

function drawImages() {
  const newest = watched.shown.slice(-watched.mostShown).reverse();
  part("images").replaceChildren(...newest.map(imageEntry));
}

function imageEntry(shown) {
  const sign = (label) => (shown.truth === null ? "" : label === shown.truth ? " ✓" : " ✗");
  const line = (className, who, label, probability) => made("span", { className },
    made("b", { textContent: `${shortened(label, 24)}${sign(label)}` }), made("small", { textContent: `${who} ${percent(probability)}` }));
  const truth = shown.truth === null ? "" : `, truly ${shown.truth}`;
  return made("li", { className: shown.label === shown.source_label ? "" : "differs" },
    made("img", { src: `data:image/png;base64,${shown.image}`, alt: `Image${truth}`, width: 64, height: 64 }),
    line("adapted", "adapted", shown.label, shown.probability), line("source", "frozen", shown.source_label, shown.source_probability));
}

function drawEvents() {
  const newest = watched.events.slice(-30).reverse();
  part("events").replaceChildren(...newest.map(({ time, kind, text, total }) =>
    made("li", {}, made("b", { className: `mark ${kind.replace(" ", "-")}`, textContent: MARKS[kind] || "▸" }),
      made("span", { textContent: text }), made("small", { textContent: `${clock(time)}, image ${total.toLocaleString("en")}` }))));
  part("events").hidden = !newest.length;
}

function drawVersions() {
  const list = part("versions"), versions = [...(watched.facts?.versions || [])].reverse(), key = `${watched.name}/${versions}`;
  if (list.dataset.key === key) return;  // so that a button keeps the focus
  list.dataset.key = key;
  list.replaceChildren(...versions.map((version) => {
    const button = made("button", { type: "button", textContent: "Roll back" });
    button.setAttribute("aria-label", `Roll back to version ${version}`);
    button.addEventListener("click", () => operate("roll-back", { version }, `Rolled back to version ${version}`));
    return made("li", {}, made("span", { textContent: `version ${version}` }), button);
  }));
}
