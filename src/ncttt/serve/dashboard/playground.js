// The playground: what is sent to its stream, changed while it plays.
"use strict";

const play = { offered: false, facts: null, touched: false };

function fillSelect(select, pairs) {
  if (select.options.length === pairs.length) return;
  select.replaceChildren(...pairs.map(([value, text]) => new Option(text, value)));
}

async function readPlayground() {
  if (play.offered) drawPlayground(await ask("playground"));
}

function drawPlayground(facts) {
  const began = !play.facts;
  play.facts = facts;
  part("playground").hidden = false;
  fillSelect(part("data"), facts.sets.map(({ name }) => [name, name]));
  fillSelect(part("corruption"), facts.corruptions.map((name) => [name, spelled(name)]));
  if (began || (facts.playing && !play.touched)) {
    part("data").value = facts.data;
    part("corruption").value = facts.corruption;
    part("severity").value = facts.severity;
    say(part("severity-shown"), String(facts.severity));
  }
  say(part("play-pause"), facts.playing ? "Pause" : "Play");
  const own = facts.sets.find(({ name }) => name === part("data").value) || facts.sets[0];
  say(part("scenario"), `Play ${own.scenario.map((name) => name.replaceAll("_", " ")).join(" → ")}`);
  const kind = facts.corruption === "clean" ? "clean images" : `${spelled(facts.corruption)}, severity ${facts.severity}`;
  const count = `${facts.sent.toLocaleString("en")} of at most ${facts.most.toLocaleString("en")} images`;
  say(part("playing"), facts.trouble ? `Ended: ${facts.trouble}` : facts.playing ? `Sending ${kind}: ${count}`
    : facts.sent ? `Ended after ${count}` : "Nothing is being sent.");
}

async function startPlaying(scenario) {
  const asked = { data: part("data").value, scenario, severity: Number(part("severity").value) };
  if (!scenario) asked.corruption = part("corruption").value;
  drawPlayground(await ask("playground/play", asked));
  play.touched = false;
  if (picker.chosen !== play.facts.stream) choose(play.facts.stream);
}

function setUpPlayground() {
  part("play").addEventListener("submit", (event) => {
    event.preventDefault();
    act(async () => (play.facts?.playing ? drawPlayground(await ask("playground/pause", {})) : startPlaying(false)), "playing");
  });
  part("scenario").addEventListener("click", () => act(() => startPlaying(true), "playing"));
  part("severity").addEventListener("input", () => {
    play.touched = true;
    say(part("severity-shown"), part("severity").value);
  });
  for (const id of ["data", "corruption", "severity"])
    part(id).addEventListener("change", () => {
      play.touched = true;
      act(async () => { if (play.facts?.playing) await startPlaying(false); }, "playing");
    });
}
