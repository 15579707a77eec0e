// The page: asks once a second while it is seen, tells when the service is away, and asks for the token.
"use strict";

const EVERY = 1000, SLOWEST = 5000, LIST_EVERY = 5;
const loop = { timer: 0, wait: EVERY, turn: 0, running: false, since: null };

async function turn() {
  if (loop.running || document.hidden || !part("entry").hidden) return;
  loop.running = true;
  clearTimeout(loop.timer);
  try {
    if (!loop.about) await showAbout();
    if (loop.turn % LIST_EVERY === 0 || !picker.chosen) await listStreams();
    await readPlayground();
    await readWatched();
    loop.turn += 1;
    reached();
  } catch (error) {
    failed(error);
  } finally {
    loop.running = false;
    if (!document.hidden && part("entry").hidden) loop.timer = setTimeout(turn, loop.wait);
  }
}

function reached() {
  loop.wait = EVERY;
  loop.since = null;
  part("trouble").hidden = true;
  say(part("connection"), "● live");
}

function failed(error) {
  if (error.status === 401) return askForToken(token.get() ? "The service refused this token." : "");
  loop.since ??= new Date();
  loop.wait = Math.min(SLOWEST, 2 * loop.wait);
  loop.turn = 0;
  say(part("connection"), "○ not connected");
  const why = error.status ? error.message : "it does not answer";
  say(part("trouble"), `The service has not been reached since ${loop.since.toLocaleTimeString("en-GB")} (${shortened(why, 200)}). Trying again.`);
  part("trouble").hidden = false;
  return undefined;
}

// Something the reader asked for: done at once, and told if it is refused.
async function act(what, place = "done") {
  try {
    await what();
  } catch (error) {
    if (error.status && error.status !== 401) say(part(place), shortened(error.message, 200));
    else failed(error);
  }
  clearTimeout(loop.timer);
  await turn();
}

async function showAbout() {
  const about = loop.about = await ask("about");
  const text = [about.model.split(/[\\/]/).pop(), about.method, about.protocol, `${about.steps} steps`].join(" · ");
  say(part("about"), shortened(text, 120));
  document.title = `${shortened(about.model, 60)} – ncttt serve`;
  play.offered = about.playground;
  watched.mostShown = about.most_shown;
  say(part("no-images"), about.most_shown ? "" : "This service keeps no images (most_shown is 0).");
  part("board").hidden = false;
}

function askForToken(why) {
  part("entry").hidden = false;
  part("board").hidden = true;
  part("trouble").hidden = true;
  say(part("connection"), "");
  say(part("refused"), why);
  part("token").focus();
}

part("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  token.set(part("token").value.trim());
  part("token").value = "";
  part("entry").hidden = true;
  turn();
});
document.addEventListener("visibilitychange", () => {
  clearTimeout(loop.timer);
  if (!document.hidden) turn();
});
setUpStreams();
setUpWatched();
setUpPlayground();
setUpTheme(drawWatched);
addEventListener("resize", drawWatched);
turn();
