// Theme, sorting and filters. Without it the page shows everything, unsorted.
"use strict";

const stored = {
  get() { try { return localStorage.getItem("ncttt-theme"); } catch { return null; } },
  set(theme) { try { localStorage.setItem("ncttt-theme", theme); } catch { /* a browser may forbid it */ } },
};

const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = () => document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
if (["light", "dark"].includes(stored.get())) document.documentElement.dataset.theme = stored.get();

function setUpTheme() {
  const button = document.getElementById("theme");
  const other = () => (theme() === "dark" ? "light" : "dark");
  const tell = () => { button.textContent = other() === "dark" ? "Dark" : "Light"; button.title = `Show it ${other()}`; };
  button.hidden = false;
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = other();
    stored.set(theme());
    tell();
  });
  dark.addEventListener("change", tell);
  tell();
}

function valueOf(row, column) {
  const cell = row.cells[column];
  if (!("value" in cell.dataset)) return cell.textContent.trim();
  return cell.dataset.value === "" ? null : Number(cell.dataset.value);
}

// What is missing comes last, whichever way round.
function compare(one, other, sign) {
  if (one === null || other === null) return (one === null) - (other === null);
  if (typeof one === "number") return sign * (one - other);
  return sign * one.localeCompare(other, "en", { numeric: true });
}

function sort(button) {
  const header = button.closest("th"), table = button.closest("table"), column = header.cellIndex;
  const first = header.classList.contains("number") ? "descending" : "ascending";
  const second = first === "descending" ? "ascending" : "descending";
  const order = header.getAttribute("aria-sort") === first ? second : first;
  for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", order);
  const body = table.tBodies[0], sign = order === "ascending" ? 1 : -1;
  const rows = [...body.rows].map((row) => [valueOf(row, column), row]);
  rows.sort(([one], [other]) => compare(one, other, sign));
  body.append(...rows.map(([, row]) => row));
}

function filter(form) {
  const chosen = [...form.querySelectorAll("select")].filter((select) => select.value !== "");
  for (const part of document.querySelectorAll("[data-filter]")) {
    part.toggleAttribute("hidden", chosen.some((select) => {
      const own = part.getAttribute(`data-${select.dataset.facet}`);
      return own !== null && own !== select.value;
    }));
  }
  for (const group of document.querySelectorAll("[data-group]"))
    group.hidden = !group.querySelector("[data-filter]:not([hidden])");
  openFirst();
  const rows = document.querySelectorAll("#methods tbody tr");
  const shown = [...rows].filter((row) => !row.hidden).length;
  document.getElementById("count").textContent = `${shown} of ${rows.length} lines`;
}

// Of the setups that are left, at least one is open.
function openFirst() {
  const setups = [...document.querySelectorAll("details.setup:not([hidden])")];
  if (setups.length && !setups.some((setup) => setup.open)) setups[0].open = true;
}

function setUpFilters() {
  const form = document.querySelector("form.filters");
  form.hidden = false;
  form.addEventListener("input", () => filter(form));
  form.addEventListener("reset", (event) => {
    event.preventDefault();  // the browser would reset it only after this, and nothing tells when
    for (const select of form.querySelectorAll("select")) select.selectedIndex = 0;
    filter(form);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  filter(form);
}

// Paper cannot be unfolded.
function setUpPrinting() {
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const part of folded) part.open = true;
  });
  addEventListener("afterprint", () => { for (const part of folded) part.open = false; });
}

document.addEventListener("DOMContentLoaded", () => {
  setUpTheme();
  setUpFilters();
  setUpPrinting();
  for (const button of document.querySelectorAll("button.sort")) button.addEventListener("click", () => sort(button));
});
