// The charts on the page: drawn again when the setup, the methods, the theme or the width changes.
const state = { setup: 0, method: "", hidden: new Set(), charts: new Map(), choices: { sort: "gain", corruption: "", line: "" } };
let data;

const still = matchMedia("(prefers-reduced-motion: reduce)");
const boxes = () => [...document.querySelectorAll("[data-chart]")];
const setupNow = () => data.setups[state.setup];
// Of one method that was chosen charts also show the model without adaptation.
const isChosen = (line) => !state.method || line.source || line.name === state.method;

function lookOf(width) {
  const narrow = width < 560;
  return {
    narrow, of: (line) => shade(line), ink: colour("ink"), soft: colour("soft"), rule: colour("rule"),
    raised: colour("raised"), paper: colour("paper"), statistics: colour("bar"),
    font: getComputedStyle(document.body).fontFamily,
  };
}

// The colour of its method; variants of a method are paler.
function shade(line) {
  const parts = (name) => colour(name).match(/[\d.]+/g).map(Number);
  const own = parts(line.colour), paper = parts("paper"), share = line.form ? 0.68 : 1;
  return `rgb(${[0, 1, 2].map((place) => Math.round(share * own[place] + (1 - share) * paper[place])).join(",")})`;
}

// Whether a setup has anything for a chart.
const HAS = {
  ranking: (setup) => setup.lines.some((line) => known(line.mean)),
  corruptions: (setup) => setup.lines.some((line) => line.each.some(known)),
  severity: (setup) => setup.severity !== null,
  shares: (setup) => setup.lines.some((line) => line.share),
  stream: (setup) => setup.lines.some((line) => line.stream.length),
  cost: (setup) => setup.lines.some((line) => known(line.mean) && line.milliseconds),
  steps: (setup) => setup.lines.some((line) => line.curve.length),
  drift: (setup) => setup.lines.some((line) => line.drift.length),
};

// What a chart needs of a line, so that a legend offers no method without it.
const SHOWS = {
  corruptions: (line) => line.each.some(known), stream: (line) => line.stream.length, steps: (line) => line.curve.length,
  severity: (line, setup) => data.severities[setup.severity]?.lines[line.name],
  cost: (line) => known(line.mean) && line.milliseconds,
};

// Paper has a width of its own, and nothing may move while it is printed.
function draw(box, paper) {
  const kind = box.dataset.chart, setup = setupNow(), width = paper || box.clientWidth;
  const filtered = Boolean(document.querySelector(`[data-legend="${kind}"]`));
  const shown = setup.lines.filter((line) => isChosen(line) && !(filtered && state.hidden.has(line.name)));
  const lines = shown.sort((one, other) => one.mean - other.mean);  // the most accurate is drawn last, on top
  const any = HAS[kind]({ ...setup, lines });
  box.hidden = !any;
  box.closest("section").hidden = !HAS[kind](setup);
  if (!any || !width) return;
  const look = lookOf(width), options = OPTIONS[kind](setup, lines, look, state.choices, data);
  tellCount(box, rowsShown(options, lines));
  const { rows, row, height = rows * row + options.grid.top + options.grid.bottom, ...own } = options;
  box.style.height = `${height}px`;
  let chart = state.charts.get(box);
  if (!chart) state.charts.set(box, chart = echarts.init(box, null, { renderer: "svg" }));
  chart.resize({ width, height, silent: true });
  chart.setOption({
    ...own, animation: !still.matches && !paper, animationDuration: 0, animationDurationUpdate: 300,
    textStyle: { fontFamily: look.font, color: look.ink },
    aria: { enabled: true, label: { description: setup.says[kind] || `${kind} of ${setup.name}` } },
    tooltip: {
      confine: true, backgroundColor: look.paper, borderColor: look.rule, padding: 10, transitionDuration: 0,
      textStyle: { color: look.ink, fontSize: 13, fontFamily: look.font }, extraCssText: "box-shadow: none;",
      ...own.tooltip,
    },
  }, { notMerge: true });
}

// Of many methods a chart shows the highest; the caption says so.
const rowsShown = ({ rows, series }, lines) => (series.length === 1 && rows < lines.length ? [rows, lines.length] : null);

function tellCount(box, shown) {
  const place = box.closest("figure").querySelector("[data-shown]");
  if (place) place.textContent = shown ? `Shown are ${shown[0]} of ${shown[1]} methods. ` : "";
}

function drawAll(paper) { for (const box of boxes()) draw(box, paper); }

// Checkboxes that are the legend, too; one that is ticked in one chart is ticked in all.
function drawLegends() {
  const setup = setupNow();
  for (const legend of document.querySelectorAll("[data-legend]")) {
    for (const label of legend.querySelectorAll("label")) label.remove();
    const shown = setup.lines.filter((line) => isChosen(line) && SHOWS[legend.dataset.legend](line, setup));
    legend.hidden = shown.length < 2;
    for (const line of shown) legend.append(legendEntry(line));
  }
}

function legendEntry(line) {
  const label = document.createElement("label"), tick = label.appendChild(document.createElement("input"));
  Object.assign(tick, { type: "checkbox", checked: !state.hidden.has(line.name) });
  tick.dataset.tick = line.name;
  const mark = label.appendChild(document.createElement("span"));
  mark.className = "swatch";
  mark.style.background = shade(line);
  label.append(line.name);
  return label;
}

function fillChoices() {
  const setup = setupNow();
  fill("corruption", ["", ...setup.corruptions], (name) => name || "all corruptions");
  fill("line", setup.lines.filter((line) => line.drift.length).map((line) => line.name), (name) => name);
}

function fill(control, values, told) {
  const select = document.querySelector(`select[data-control="${control}"]`);
  if (!select) return;
  select.replaceChildren(...values.map((value) => new Option(told(value), value)));
  select.value = values.includes(state.choices[control]) ? state.choices[control] : values[0] ?? "";
  state.choices[control] = select.value;
  select.closest(".controls").hidden = values.length < 2;
}

// Sections, sentences and legends of another setup.
function showSetup(place) {
  state.setup = place;
  const setup = setupNow();
  for (const part of document.querySelectorAll("[data-says]")) part.textContent = setup.says[part.dataset.says] || "";
  for (const part of document.querySelectorAll("[data-setup]")) part.textContent = setup.name;
  fillChoices();
  drawLegends();
  drawAll();
}

function setUpFigures() {
  data = JSON.parse(document.getElementById("data").textContent);
  state.setup = data.main;
  for (const setup of data.setups) for (const line of setup.lines) if (!line.ticked) state.hidden.add(line.name);
  for (const select of document.querySelectorAll("select[data-control]"))
    select.addEventListener("change", () => {
      state.choices[select.dataset.control] = select.value;
      draw(select.closest("figure").querySelector("[data-chart]"));
    });
  document.addEventListener("change", ({ target }) => {
    if (!target.dataset?.tick) return;
    state.hidden[target.checked ? "delete" : "add"](target.dataset.tick);
    for (const tick of document.querySelectorAll("[data-tick]"))
      if (tick.dataset.tick === target.dataset.tick) tick.checked = target.checked;
    drawAll();
  });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; drawAll(); } });
}
