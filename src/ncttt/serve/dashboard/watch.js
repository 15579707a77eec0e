// The stream that is watched: its history as it grows, what it is now, and what an operator may do to it.
"use strict";

const MOST = { points: 720, events: 100, shown: 100 };
const watched = { name: "", since: 0, points: [], events: [], shown: [], facts: null, moment: null, said: 0, mostShown: 12 };

function watch(name) {
  Object.assign(watched, { name, since: 0, points: [], events: [], shown: [], facts: null, moment: null, said: 0 });
  say(part("done"), "");
  act(async () => {});
}

async function readWatched() {
  const { name } = watched;
  if (!name) return;
  const told = await ask(`streams/${encodeURIComponent(name)}/history?since=${watched.since}`);
  if (name !== watched.name) return;  // another was chosen meanwhile
  grow(told);
  watched.facts = told.facts;
  announce();
  drawWatched();
}

// What is new replaces what may have grown since; what the service has forgotten goes here, too.
function grow(told) {
  const restarted = told.next < watched.since, anew = restarted || told.first > watched.since;
  for (const kind of ["points", "events", "shown"]) {
    const kept = anew ? [] : watched[kind].filter(({ number }) => number < watched.since);
    watched[kind] = [...kept, ...told[kind]].slice(-MOST[kind]);
  }
  watched.points = watched.points.filter(({ number }) => number >= told.first);
  watched.since = restarted ? 0 : told.next;  // all of it is asked for again
}

// The newest alarm or its end, in one sentence; not what was there when the stream was opened.
function announce() {
  const news = watched.events.filter(({ kind }) => kind === "alarm" || kind === "calm").at(-1);
  const before = watched.said;
  watched.said = watched.events.at(-1)?.number || 1;
  if (before && news && news.number > before) say(part("alarms"), `${watched.name}: ${news.text}`);
}

function drawWatched() {
  const shown = Boolean(watched.name);
  part("none").hidden = shown;
  part("stream").hidden = part("beside").hidden = !shown;
  if (!shown) return;
  say(part("name"), watched.name);
  drawState();
  drawCharts();
  drawImages();
  drawEvents();
  drawVersions();
  if (part("numbers").open) drawTable();
}

function drawState() {
  const { facts, points } = watched, last = points.at(-1);
  const drift = facts?.drift || (last && last.drift !== null ? { score: last.drift, alarm: last.alarm } : null);
  const chips = [];
  if (facts) chips.push([facts.frozen ? "‖ Frozen" : facts.hot ? "▷ Learning" : "On disk", facts.frozen ? "held" : ""]);
  if (drift) chips.push([`${drift.alarm ? "! Drift alarm" : "No drift alarm"}, score ${drift.score.toFixed(1)}`, drift.alarm ? "alarm" : ""]);
  if (facts?.images !== null && facts) chips.push([`${facts.images.toLocaleString("en")} images`, ""]);
  if (facts) chips.push([`version ${facts.version}, saved ${facts.saved}`, ""]);
  part("state").replaceChildren(...chips.map(([textContent, className]) => made("span", { className: `chip ${className}`, textContent })));
  part("freeze").disabled = part("reset").disabled = !facts;
  say(part("freeze"), facts?.frozen ? "Thaw" : "Freeze");
}

function operate(action, body, said) {
  const { name } = watched;
  return act(async () => {
    const facts = await ask(`streams/${encodeURIComponent(name)}/${action}`, body);
    say(part("done"), `${said}; the stream is now at version ${facts.version}.`);
  });
}

function setUpWatched() {
  part("freeze").addEventListener("click", () => (watched.facts?.frozen ? operate("thaw", {}, "Learning again") : operate("freeze", {}, "Frozen")));
  part("reset").addEventListener("click", () => operate("reset", {}, "Back to the frozen model"));
  part("numbers").addEventListener("toggle", drawWatched);
  part("moment").addEventListener("input", ({ target }) => {
    const place = Number(target.value);
    watched.moment = place >= watched.points.length - 1 ? null : watched.points[place].number;
    drawCharts();
  });
  part("plots").addEventListener("pointermove", (event) => {
    if (!watched.points.length) return;
    const frame = frameOf(part("charts").clientWidth, watched.points), x = event.clientX - part("plots").getBoundingClientRect().left;
    const distance = (point) => Math.abs(frame.x(point.total) - x);
    watched.moment = watched.points.reduce((one, other) => (distance(other) < distance(one) ? other : one)).number;
    drawCharts();
  });
  part("plots").addEventListener("pointerleave", () => { watched.moment = null; drawCharts(); });
}
