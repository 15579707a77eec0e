// Charts as SVG: lines over the images of a stream, bands where the drift alarm stands, shares of classes as a strip each.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 46, RIGHT = 10, TOP = 8, BOTTOM = 20;
const MARKS = {  // a sign of its own for each kind of event, so that none is told by colour alone
  alarm: "!", calm: "✓", reset: "↺", frozen: "‖", thawed: "▷", "rolled back": "↶", collapse: "✕", fallback: "✕",
};

function drawn(tag, attributes = {}, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// What all charts of a stream share: how wide they are, and where a number of images lies.
function frameOf(width, points) {
  const first = points[0].total - points[0].images, last = points.at(-1).total;
  const span = Math.max(100, last - first), inside = width - LEFT - RIGHT;
  return { width, first, last: first + span, x: (total) => LEFT + inside * (total - first) / span };
}

function canvas(frame, height, label) {
  return drawn("svg", { width: frame.width, height, viewBox: `0 0 ${frame.width} ${height}`, role: "img", "aria-label": label });
}

// Runs of points in which the alarm stood, as pairs of numbers of images.
function alarmsOf(points) {
  const runs = [];
  points.forEach((point, place) => {
    if (!point.alarm || !point.images) return;
    const from = place ? points[place - 1].total : point.total - point.images, last = runs.at(-1);
    if (last && last[1] >= from) last[1] = point.total; else runs.push([from, point.total]);
  });
  return runs;
}

function addBackground(svg, frame, height, points, events) {
  for (const [from, to] of alarmsOf(points)) {
    const x = frame.x(from), width = Math.max(2, frame.x(to) - x);
    svg.append(drawn("rect", { class: "alarmed", x, y: TOP, width, height: height - TOP - BOTTOM }));
    svg.append(drawn("rect", { class: "alarm-edge", x, y: TOP, width, height: 3 }));
  }
  for (const event of events)
    if (event.total >= frame.first) {
      const x = frame.x(event.total);
      svg.append(drawn("line", { class: event.kind === "domain" ? "change domain" : "change", x1: x, x2: x, y1: TOP, y2: height - BOTTOM }));
    }
}

function addAxes(svg, frame, height, ticks, y) {
  for (const [value, text] of ticks) {
    svg.append(drawn("line", { class: "rule", x1: LEFT, x2: frame.width - RIGHT, y1: y(value), y2: y(value) }));
    svg.append(drawn("text", { class: "tick", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, text));
  }
  for (const total of round(frame))
    svg.append(drawn("text", { class: "tick", x: frame.x(total), y: height - 5, "text-anchor": "middle" }, total.toLocaleString("en")));
}

// Four to seven round numbers of images.
function round({ first, last, width }) {
  const raw = (last - first) / (width < 480 ? 4 : 7), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= raw), found = [];
  for (let total = Math.ceil(first / step) * step; total <= last - (last - first) / 40; total += step) found.push(total);
  return found;
}

function addMoment(svg, frame, height, point) {
  const x = frame.x(point.total);
  svg.append(drawn("line", { class: "moment", x1: x, x2: x, y1: TOP, y2: height - BOTTOM }));
}

// Lines of [name, class, points -> value or null]; a gap where a value is not known.
function linePlot(frame, { height = 130, label, top, ticks, lines, threshold }, points, events, moment) {
  const svg = canvas(frame, height, label);
  const y = (value) => TOP + (height - TOP - BOTTOM) * (1 - Math.min(1, Math.max(0, value / top)));
  addBackground(svg, frame, height, points, events);
  addAxes(svg, frame, height, ticks, y);
  if (threshold !== undefined)
    svg.append(drawn("line", { class: "threshold", x1: LEFT, x2: frame.width - RIGHT, y1: y(threshold), y2: y(threshold) }));
  for (const { style, values } of lines) svg.append(drawn("path", { class: `line ${style}`, d: pathOf(frame, points, values, y) }));
  if (moment) addMoment(svg, frame, height, moment);
  return svg;
}

function pathOf(frame, points, values, y) {
  let path = "", open = false;
  points.forEach((point, place) => {
    const value = values[place];
    if (value === null) { open = false; return; }
    path += `${open ? "L" : "M"}${frame.x(point.total).toFixed(1)} ${y(value).toFixed(1)}`;
    if (!open) path += "h0.1";  // a point alone is seen, too
    open = true;
  });
  return path;
}

// A row for each class, darker where more of the predictions are of it.
function sharePlot(frame, { label, rows, columns }, points, events, moment) {
  const row = 15, height = TOP + rows.length * row + BOTTOM, svg = canvas(frame, height, label);
  for (const [from, to] of alarmsOf(points)) {
    const x = frame.x(from);
    svg.append(drawn("rect", { class: "alarm-edge", x, y: TOP - 4, width: Math.max(2, frame.x(to) - x), height: 3 }));
  }
  rows.forEach(({ name, shares }, place) => {
    const y = TOP + place * row;
    svg.append(drawn("text", { class: "tick", x: LEFT - 6, y: y + 11, "text-anchor": "end" }, shortened(name, 5)));
    columns.forEach(([from, to], column) => {
      const opacity = Math.min(1, 0.04 + 1.6 * shares[column]);
      svg.append(drawn("rect", { class: "share", x: frame.x(from), y: y + 1, width: Math.max(1, frame.x(to) - frame.x(from) + 0.3), height: row - 2, "fill-opacity": opacity.toFixed(2) }));
    });
  });
  addAxes(svg, frame, height, [], () => 0);
  for (const event of events)
    if (event.kind === "domain" && event.total >= frame.first)
      svg.append(drawn("line", { class: "change domain", x1: frame.x(event.total), x2: frame.x(event.total), y1: TOP, y2: height - BOTTOM }));
  if (moment) addMoment(svg, frame, height, moment);
  return svg;
}

// What happened, above the charts: the kinds of images where they are known, and a sign for each event.
function lanePlot(frame, points, events) {
  const domains = events.filter(({ kind }) => kind === "domain"), others = events.filter(({ kind }) => MARKS[kind]);
  const height = (domains.length ? 22 : 0) + 20, svg = canvas(frame, height, laneLabel(domains, others));
  domains.forEach((domain, place) => {
    const x = frame.x(Math.max(domain.total, frame.first));
    const end = frame.x(place + 1 < domains.length ? domains[place + 1].total : Math.max(points.at(-1).total, domain.total));
    if (end - x < 1) return;
    svg.append(drawn("rect", { class: "domain-bar", x: x + 1, y: 1, width: Math.max(1, end - x - 2), height: 18, rx: 3 }));
    const most = Math.floor((end - x - 8) / 6.6);
    if (most > 3) svg.append(drawn("text", { class: "domain-name", x: x + 6, y: 14 }, shortened(domain.text, most)));
  });
  let free = Infinity;
  for (const event of [...others].reverse()) {  // of those that would overlap the newest is shown
    const x = frame.x(event.total);
    if (event.total < frame.first || x > free) continue;
    const sign = drawn("g", { class: `sign ${event.kind.replace(" ", "-")}` });
    sign.append(drawn("title", {}, `${clock(event.time)} ${event.text}`));
    sign.append(drawn("rect", { x: x - 9, y: height - 18, width: 18, height: 16, rx: 8 }));
    sign.append(drawn("text", { x, y: height - 6, "text-anchor": "middle" }, MARKS[event.kind]));
    svg.append(sign);
    free = x - 19;
  }
  return svg;
}

function laneLabel(domains, others) {
  const kinds = domains.map(({ text }) => text).join(", then ");
  return `${kinds ? `Images: ${kinds}. ` : ""}${others.length} events, listed under Events.`;
}
