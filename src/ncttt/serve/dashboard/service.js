// Asking the service: with the token if there is one, an error for whatever is no answer.
"use strict";

const KEY = "ncttt-token";
const token = {
  get() { try { return sessionStorage.getItem(KEY); } catch { return token.kept; } },
  set(value) { token.kept = value; try { sessionStorage.setItem(KEY, value); } catch { /* a browser may forbid it */ } },
};
const SECONDS = 10;  // until an answer is given up

class Refusal extends Error {
  constructor(status, detail) { super(detail); this.status = status; }
}

async function ask(path, body) {
  const headers = token.get() ? { Authorization: `Bearer ${token.get()}` } : {};
  const options = { headers, cache: "no-store", signal: AbortSignal.timeout(1000 * SECONDS) };
  if (body !== undefined) {
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
    headers["Content-Type"] = "application/json";
  }
  const answer = await fetch(path, options);
  const value = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refusal(answer.status, String(value.detail || `status ${answer.status}`));
  return value;
}

const part = (id) => document.getElementById(id);

// An element with properties and children; whatever the service says becomes text, never HTML.
function made(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== null));
  return element;
}

function say(element, text) { if (element.textContent !== text) element.textContent = text; }

const shortened = (text, most = 40) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const percent = (share) => (share === null ? "–" : `${Math.round(100 * share)}\u00a0%`);
const spelled = (name) => {
  const words = name.replaceAll("_", " ").replace(/^jpeg/, "JPEG");
  return words.charAt(0).toUpperCase() + words.slice(1);
};
const clock = (seconds) => new Date(1000 * seconds).toLocaleTimeString("en-GB");
