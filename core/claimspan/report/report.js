"use strict";
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

const list = $("#list");
const rows = $$(":scope > li", list).map((element, place) => ({
  ...element.dataset,
  element,
  place,
  scores: JSON.parse(element.dataset.scores),
  labels: element.dataset.labels.split(" "),
}));
const lower = new Set($$(".glossary .lower").map((mark) => mark.closest("div").id.slice(2)));

// --- order: lowest scores first; a record without the score comes last ---

function orderValue(row, order) {
  if (order === "worst") return row.place;
  if (order === "newest") return -row.started;
  if (order === "slowest") return -row.seconds;
  const score = row.scores[order];
  if (score === undefined) return Infinity;
  return lower.has(order) ? -score : score;
}

function arrange(order) {
  const before = (a, b) => a - b || 0; // Infinity - Infinity is NaN
  rows.sort((a, b) => before(orderValue(a, order), orderValue(b, order)) || a.place - b.place);
  filter();
  $("#order").value = order;
  for (const button of $$("[data-order]")) {
    button.setAttribute("aria-pressed", button.dataset.order === order);
  }
}

// --- filter ---

function words(row) {
  return (row.words ??= row.element.textContent.toLowerCase());
}

function filter() {
  const wanted = $("#find").value.toLowerCase().split(/\s+/);
  const status = $("#status").value;
  const labels = $$(".legend [aria-pressed=true]").map((button) => button.dataset.label);
  const shown = rows.filter(
    (row) =>
      (!status || row.status === status) &&
      labels.every((label) => row.labels.includes(label)) &&
      wanted.every((word) => words(row).includes(word)),
  );
  // Removing the rows from the document is several times faster than hiding each of them.
  list.replaceChildren(...shown.map((row) => row.element));
  $("#shown").textContent = `${shown.length} of ${rows.length} records`;
  $("#nothing").hidden = shown.length > 0;
}

// --- pointing at a claim highlights its chunks, pointing at a chunk its claims ---

let lit = [];

function light(target) {
  for (const element of lit) element.classList.remove("lit", "focusing");
  lit = [];
  const source = target.closest?.("[data-id]");
  const record = source?.closest(".body");
  if (!record) return;
  const ids = new Set(source.dataset.id.split(" "));
  for (const id of [...ids]) {
    const whole = $(`[data-id="${id}"][data-links]`, record);
    for (const link of whole.dataset.links.split(" ")) ids.add(link);
  }
  ids.delete("");
  lit = [...ids].flatMap((id) => $$(`[data-id~="${id}"]:not(.chips a)`, record));
  for (const element of lit) element.classList.add("lit");
  // Other chunks fade for a claim, but not for a chunk that the user is reading.
  if (!source.matches(".chunk") && lit.some((element) => element.matches(".chunk"))) {
    record.classList.add("focusing");
    lit.push(record);
  }
}

document.addEventListener("mouseover", (event) => light(event.target));
document.addEventListener("focusin", (event) => light(event.target));

// --- events: without a script the controls stay hidden or disabled ---

$(".tools").hidden = false;
$(".tools").addEventListener("submit", (event) => event.preventDefault());
let typing;
$(".tools").addEventListener("input", (event) => {
  if (event.target.id === "order") return arrange(event.target.value);
  clearTimeout(typing);
  typing = setTimeout(filter, 120); // one filter pass after the typing, not one for each key
});
for (const button of $$("button[disabled]")) button.disabled = false;
for (const button of $$("[data-order]")) {
  button.addEventListener("click", () => arrange(button.dataset.order));
}
for (const button of $$("[data-label]")) {
  button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") !== "true");
    filter();
  });
}
$("#find").value = $("#status").value = ""; // browsers keep the typed text over a reload
filter();

function openTarget() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  const record = target && target.closest("details");
  if (record) record.open = true;
}
addEventListener("hashchange", openTarget);
openTarget();
