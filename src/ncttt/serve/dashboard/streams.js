// The picker of streams: a page of names, or those that contain some letters.
"use strict";

const PAGE = 12;
const picker = { first: 0, total: 0, chosen: "", names: [], trouble: "" };

async function listStreams() {
  const wanted = part("part").value.trim().toLowerCase();
  const query = new URLSearchParams({ first: picker.first, most: PAGE });
  if (wanted) query.set("part", wanted);
  try {
    const { streams, total } = await ask(`streams?${query}`);
    Object.assign(picker, { names: streams, total, trouble: "" });
    if (picker.first >= total && picker.first > 0) picker.first = 0;
  } catch (error) {
    if (error.status !== 422) throw error;
    Object.assign(picker, { names: [], total: 0, trouble: error.message });  // a protocol that keeps no state
  }
  drawStreams();
  if (!picker.chosen && picker.names.length && !wanted) choose(picker.names[0].name);
}

function drawStreams() {
  const list = part("streams"), focused = document.activeElement?.dataset?.stream;
  list.replaceChildren(...picker.names.map(streamEntry));
  if (focused !== undefined) [...list.querySelectorAll("button")].find((one) => one.dataset.stream === focused)?.focus();
  const last = Math.min(picker.total, picker.first + PAGE);
  const told = picker.total > PAGE ? `${picker.first + 1} to ${last} of ${picker.total.toLocaleString("en")}` : "";
  say(part("of-streams"), picker.trouble || told || (picker.total ? "" : "no stream of that name yet"));
  part("before").parentElement.hidden = picker.total <= PAGE;
  part("before").disabled = picker.first === 0;
  part("after").disabled = last >= picker.total;
}

function streamEntry(stream) {
  const button = made("button", { type: "button" }, made("span", { textContent: stream.name }));
  button.dataset.stream = stream.name;
  if (stream.name === picker.chosen) button.setAttribute("aria-current", "true");
  const marks = [stream.drift?.alarm && "! drift", stream.frozen && "frozen", !stream.hot && "on disk"].filter(Boolean);
  if (marks.length) button.append(made("small", { textContent: marks.join(", ") }));
  button.addEventListener("click", () => choose(stream.name));
  return made("li", {}, button);
}

function choose(name) {
  picker.chosen = name;
  drawStreams();
  watch(name);
}

function setUpStreams() {
  let waiting;
  const again = () => act(listStreams);
  part("part").addEventListener("input", () => {
    picker.first = 0;
    clearTimeout(waiting);
    waiting = setTimeout(again, 200);
  });
  part("find").addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = part("part").value.trim();
    const name = picker.names[0]?.name || (picker.trouble && typed);
    if (name) choose(name);
  });
  for (const [id, step] of [["before", -PAGE], ["after", PAGE]])
    part(id).addEventListener("click", () => {
      picker.first = Math.max(0, picker.first + step);
      again();
    });
}
