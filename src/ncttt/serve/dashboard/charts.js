// The charts of the stream that is watched, from the points of its history, and the same numbers as a table.
"use strict";

const WINDOW = 100, COLUMNS = 48, ROWS = 12;

// Shares of the last hundred images, or labels, at each point; null before the first.
function moving(points, part_, whole) {
  let begin = 0, parts = 0, all = 0;
  return points.map((point) => {
    parts += point[part_];
    all += point[whole];
    while (all - points[begin][whole] >= WINDOW) {
      parts -= points[begin][part_];
      all -= points[begin][whole];
      begin += 1;
    }
    return all ? parts / all : null;
  });
}

function seriesOf(points) {
  const scored = points.some(({ labels }) => labels);
  const changed = moving(points, "changed", "images");
  return {
    scored, agreement: changed.map((share) => (share === null ? null : 1 - share)), drift: points.map(({ drift }) => drift),
    adapted: scored ? moving(points, "adapted", "labels") : [], source: scored ? moving(points, "source", "labels") : [],
  };
}

function momentOf(points) {
  const place = points.findIndex(({ number }) => number === watched.moment);
  return place < 0 ? points.length - 1 : place;
}

function drawCharts() {
  const { points, events } = watched, width = part("charts").clientWidth;
  const slider = part("moment");
  part("plots").hidden = part("lane").hidden = slider.hidden = part("legend").hidden = !points.length;
  if (!points.length) say(part("readout"), "No batch of this stream is in memory; charts begin with its next one.");
  if (!points.length || !width) return;
  const frame = frameOf(width, points), series = seriesOf(points), place = momentOf(points);
  const moment = watched.moment === null ? null : points[place], at = (values) => values[place] ?? null;
  part("lane").replaceChildren(lanePlot(frame, points, events));
  const grid = [[0, "0 %"], [0.5, "50 %"], [1, "100 %"]], plots = [];
  if (series.scored)
    plots.push(plotBox(`Accuracy, last ${WINDOW} labels`, [["adapted", "adapted", percent(at(series.adapted))], ["source", "frozen", percent(at(series.source))]],
      linePlot(frame, { height: 190, label: `Accuracy: adapted ${percent(at(series.adapted))}, frozen ${percent(at(series.source))}`, top: 1, ticks: grid,
        lines: [{ style: "source", values: series.source }, { style: "adapted", values: series.adapted }] }, points, events, moment)));
  plots.push(driftBox(frame, series, at, moment));
  plots.push(plotBox(`Agreement with the frozen model, last ${WINDOW} images`, [["agreement", "agreement", percent(at(series.agreement))]],
    linePlot(frame, { label: `Agreement: ${percent(at(series.agreement))}`, top: 1, ticks: grid, lines: [{ style: "agreement", values: series.agreement }] }, points, events, moment)));
  const shares = sharesOf(points);
  plots.push(plotBox("Predicted classes; darker: a larger share", [["share", "most frequent", `${shortened(shares.rows[0].name, 20)} ${percent(shares.rows[0].all)}`]],
    sharePlot(frame, { label: `Shares of ${shares.rows.length} classes; the most frequent is ${shares.rows[0].name}`, ...shares, rows: shares.ordered }, points, events, moment)));
  part("plots").replaceChildren(...plots);
  const said = momentText(points[place], series, place);
  say(part("readout"), said);
  Object.assign(slider, { max: points.length - 1, value: place });
  slider.setAttribute("aria-valuetext", said);
  say(part("legend"), `Over the images of this stream. Shaded with a bar on top: drift alarm. ${[...new Set(events.map(({ kind }) => kind))].filter((kind) => MARKS[kind]).map((kind) => `${MARKS[kind]} ${kind === "calm" ? "alarm ended" : kind}`).join(", ")}`);
}

function driftBox(frame, series, at, moment) {
  const known = series.drift.filter((score) => score !== null);
  if (!known.length) return plotBox("Drift score", [["drift", "not known: the model is not calibrated", ""]], null);
  const scale = (score) => Math.log10(1 + score), value = at(series.drift);
  const ticks = [[0, "0"], [2, "2"], [10, "10"], [99, "99"]].map(([score, text]) => [scale(score), text]);
  return plotBox("Drift score; above 2 (dashed line): alarm", [["drift", "score", value === null ? "–" : value.toFixed(1)]],
    linePlot(frame, { label: `Drift score ${value === null ? "not known" : value.toFixed(1)}`, top: 2.1, ticks, threshold: scale(2),
      lines: [{ style: "drift", values: series.drift.map((score) => (score === null ? null : scale(score))) }] }, watched.points, watched.events, moment));
}

function plotBox(title, keys, svg) {
  const legend = keys.map(([style, name, value]) => made("span", { className: "key" }, made("span", { className: `dash ${style}` }), `${name} `, made("b", { textContent: value })));
  return made("div", { className: "plot" }, made("h3", { textContent: title }), made("p", { className: "keys" }, ...legend), svg);
}

function momentText(point, series, place) {
  const parts = [clock(point.time), `image ${point.total.toLocaleString("en")}`];
  if (series.scored) parts.push(`adapted ${percent(series.adapted[place])}`, `frozen ${percent(series.source[place])}`);
  if (point.drift !== null) parts.push(`drift ${point.drift.toFixed(1)}${point.alarm ? " (alarm)" : ""}`);
  return [...parts, `agreement ${percent(series.agreement[place])}`].join(" · ");
}

// Shares of the most frequent classes, in columns of as many points each.
function sharesOf(points) {
  const size = Math.ceil(points.length / COLUMNS), columns = [], sums = [], all = new Map();
  for (let begin = 0; begin < points.length; begin += size) {
    const own = points.slice(begin, begin + size), sum = new Map();
    for (const { classes } of own)
      for (const [index, count] of Object.entries(classes)) {
        sum.set(index, (sum.get(index) || 0) + count);
        all.set(index, (all.get(index) || 0) + count);
      }
    columns.push([own[0].total - own[0].images, own.at(-1).total]);
    sums.push(sum);
  }
  const whole = (sum) => [...sum.values()].reduce((one, other) => one + other, 0) || 1;
  const rows = [...all].sort((one, other) => other[1] - one[1]).slice(0, ROWS).map(([index, count]) => ({
    index: Number(index), name: loop.about.classes[index] ?? index, all: count / whole(all),
    shares: sums.map((sum) => (sum.get(index) || 0) / whole(sum)),
  }));
  if (!rows.length) rows.push({ index: 0, name: "none yet", all: null, shares: sums.map(() => 0) });
  return { columns, rows, ordered: [...rows].sort((one, other) => one.index - other.index) };
}

function drawTable() {
  const { points } = watched, series = seriesOf(points);
  const heads = ["Time", "Images", "Drift", "Alarm", "Agreement", ...(series.scored ? ["Adapted", "Frozen"] : []), "Steps", "Version"];
  const step = Math.max(1, Math.floor(points.length / 40)), rows = [];
  for (let place = points.length - 1; place >= 0; place -= step) {
    const point = points[place];
    rows.push([clock(point.time), point.total, point.drift?.toFixed(1) ?? "–", point.alarm ? "alarm" : "no", percent(series.agreement[place]),
      ...(series.scored ? [percent(series.adapted[place]), percent(series.source[place])] : []), point.steps, point.version]);
  }
  const shares = sharesOf(points).rows.map(({ name, all }) => [shortened(name), percent(all)]);
  const [numbers, classes] = part("numbers").querySelectorAll("table");
  fillTable(numbers, "Newest first", heads, rows);
  fillTable(classes, "The most frequent classes, over all of it", ["Class", "Share"], shares);
}

function fillTable(table, caption, heads, rows) {
  const head = made("tr", {}, ...heads.map((textContent) => made("th", { textContent, scope: "col" })));
  const body = rows.map(([first, ...rest]) => made("tr", {}, made("th", { textContent: first, scope: "row" }),
    ...rest.map((textContent) => made("td", { textContent }))));
  table.replaceChildren(made("caption", { textContent: caption }), made("thead", {}, head), made("tbody", {}, ...body));
}
