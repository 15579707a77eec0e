// Sorting, filters, folding and printing. Without scripts the page shows every table, unsorted.
function valueOf(row, column) {
  const cell = row.cells[column];
  if (cell.matches("th, .text")) return cell.textContent.trim();
  const value = parseFloat(cell.dataset.value ?? cell.textContent);
  return Number.isNaN(value) ? null : value;
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

const chosenFacets = () => [...document.querySelectorAll("form.filters select")].filter((select) => select.value !== "");

function filterParts() {
  const chosen = chosenFacets();
  for (const part of document.querySelectorAll("[data-filter]")) {
    part.toggleAttribute("hidden", chosen.some((select) => {
      const own = part.getAttribute(`data-${select.dataset.facet}`);
      return own !== null && own !== select.value;
    }));
  }
  const count = document.getElementById("count"), rows = document.querySelectorAll("#methods tbody tr");
  const shown = [...rows].filter((row) => !row.hidden).length;
  if (count) count.textContent = `${shown} of ${rows.length} lines`;
}

// Charts show one setup: the first that fits what was chosen, the main one if it does.
function filter() {
  filterParts();
  const chosen = chosenFacets();
  const fits = ({ facets }) => chosen.every(({ dataset, value }) => (facets[dataset.name] ?? value) === value);
  state.method = chosen.find((select) => select.dataset.name === "method")?.value || "";
  const places = [data.main, ...data.setups.keys()].filter((place) => fits(data.setups[place]));
  if (places.length) showSetup(places[0]);
}

function setUpFilters() {
  const form = document.querySelector("form.filters");
  filterParts();
  if (!form) return;
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("reset", (event) => {
    event.preventDefault();  // the browser would reset it only after this, and nothing tells when
    for (const select of form.querySelectorAll("select")) select.selectedIndex = 0;
    filter();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
}

// Tables are open in the file, for readers without scripts; a link to what is folded opens it.
function setUpFolding() {
  for (const part of document.querySelectorAll("details[data-fold]")) part.open = false;
  const unfold = () => {
    const part = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = part && part.classList.contains("folded") && part.querySelector("details");
    if (folded) folded.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
}

// Paper cannot be unfolded, is white, and has a width of its own.
function setUpPrinting() {
  const PAPER = 680;
  let folded = [], before;
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const part of folded) part.open = true;
    before = root.dataset.theme;
    root.dataset.theme = "light";
    drawLegends();
    drawAll(PAPER);
  });
  addEventListener("afterprint", () => {
    for (const part of folded) part.open = false;
    if (before) root.dataset.theme = before; else delete root.dataset.theme;
    drawLegends();
    drawAll();
  });
}

document.addEventListener("DOMContentLoaded", () => {
  setUpFolding();
  setUpFigures();
  setUpFilters();
  showSetup(data.main);
  setUpTheme(() => { drawLegends(); drawAll(); });
  setUpPrinting();
  for (const button of document.querySelectorAll("button.sort")) button.addEventListener("click", () => sort(button));
});
