"use strict";
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

const list = $("#list");
const index = JSON.parse($("#index").textContent);
const rows = index.statuses.map((statuses, place) => ({
  place,
  statuses,
  scores: index.scores[place],
  judged: index.judged[place],
  labels: index.labels[place],
  parts: index.parts[place],
  started: index.started[place] ?? 0,
  seconds: index.seconds[place],
  values: index.values[place],
  confidence: index.confidences[place],
}));
const lower = new Set($$("#order .lower").map((option) => option.value));

// --- records: the first page is in the document, the others are unpacked block by block ---

const packed = $$("script.block").map((script) => script.textContent);
const firstPage = [...list.children];
const unpacked = new Map(); // the blocks that were used last
const KEPT_BLOCKS = 60; // a page may need a record of 50 different blocks

async function unpack(number) {
  const binary = atob(packed[number - 1]);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

async function block(number) {
  const found = unpacked.get(number) ?? (await unpack(number));
  unpacked.delete(number);
  unpacked.set(number, found);
  if (unpacked.size > KEPT_BLOCKS) unpacked.delete(unpacked.keys().next().value);
  return found;
}

async function elementOf(row) {
  if (row.place < firstPage.length) return firstPage[row.place];
  const html = await block(Math.floor(row.place / index.size));
  const template = document.createElement("template");
  // The page was written by a template that escapes everything of a record, here as on page one.
  template.innerHTML = html[row.place % index.size];
  return template.content.firstElementChild;
}

// --- order: worst scores first; a record without the score comes last ---

function orderValue(row, order) {
  if (order === "place") return row.place;
  if (order === "newest") return -row.started;
  if (order === "slowest") return -row.seconds;
  if (order === "doubtful") return row.confidence ?? Infinity;
  const score = row.scores[index.metrics.indexOf(order)];
  if (score === null || score === undefined) return Infinity;
  return lower.has(order) ? -score : score;
}

function arrange(order) {
  const before = (a, b) => a - b || 0; // Infinity - Infinity is NaN
  rows.sort((a, b) => before(orderValue(a, order), orderValue(b, order)) || a.place - b.place);
  $("#order").value = order;
  for (const button of $$("[data-order]")) {
    button.setAttribute("aria-pressed", button.dataset.order === order);
  }
  return filter();
}

// --- search: the texts of all records are read once, when the first word is typed ---

const PLAIN = { lt: "<", gt: ">", amp: "&", "#34": '"', "#39": "'" };
let texts = null;

function textOf(html) {
  const text = html.replace(/<[^>]*>/g, "");
  return text.replace(/&(lt|gt|amp|#34|#39);/g, (_, name) => PLAIN[name]).toLowerCase();
}

async function readTexts(run) {
  const found = firstPage.map((element) => element.textContent.toLowerCase());
  for (let number = 1; number <= packed.length; number += 1) {
    if (number % 20 === 1) say(`reading ${found.length} of ${rows.length} records`);
    for (const html of await unpack(number)) found.push(textOf(html));
    if (run !== latest) return null;
  }
  return found;
}

// --- filter ---

const pressed = (selector) => $$(`${selector}[aria-pressed=true]`).map((button) => button.dataset);
const say = (text) => ($("#shown").textContent = text);
let shown = rows;
let page = 0;
let latest = 0;

function chosen() {
  const status = $("#status").value;
  const labels = pressed("[data-label]").map((data) => data.label);
  const verdicts = pressed("[data-verdict]").map((data) => data.verdict);
  const parts = pressed("[data-part]").map((data) => data.part);
  const slices = pressed("[data-slice]").map((data) => [Number(data.slice), Number(data.value)]);
  return (row) =>
    (!status || row.statuses.includes(status)) &&
    labels.every((label) => row.labels.includes(label)) &&
    (!verdicts.length || verdicts.some((label) => row.judged.includes(label))) &&
    (!parts.length || parts.some((part) => row.parts.includes(part))) &&
    slices.every(([key, value]) => row.values[key] === value);
}

async function filter() {
  const run = ++latest;
  const wanted = $("#find").value.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length && !texts) {
    const read = await readTexts(run);
    if (run !== latest) return; // something else was typed or chosen meanwhile
    texts = read;
  }
  const matches = chosen();
  shown = rows.filter(
    (row) => matches(row) && wanted.every((word) => texts[row.place].includes(word)),
  );
  await turn(0, run);
}

// --- pages: the document holds the records of one page, however many there are ---

async function turn(wanted, run = ++latest) {
  const last = Math.max(Math.ceil(shown.length / index.size) - 1, 0);
  const next = Math.min(Math.max(wanted, 0), last);
  const visible = shown.slice(next * index.size, (next + 1) * index.size);
  const elements = [];
  for (const row of visible) elements.push(await elementOf(row));
  if (run !== latest) return;
  page = next;
  list.replaceChildren(...elements);
  say(`${shown.length} of ${rows.length} records`);
  $("#nothing").hidden = shown.length > 0;
  $(".pager").hidden = last === 0;
  $("#page").textContent = `page ${page + 1} of ${last + 1}`;
  for (const button of $$(".pager button")) {
    button.disabled = button.dataset.turn.startsWith("-") ? page === 0 : page === last;
  }
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
    for (const link of whole?.dataset.links.split(" ") ?? []) ids.add(link);
  }
  ids.delete("");
  lit = [...ids].flatMap((id) => $$(`[data-id~="${id}"]:not(.chips a)`, record));
  for (const element of lit) element.classList.add("lit");
  // Other chunks fade for a claim, but not for a chunk that the user is reading.
  if (!source.closest(".chunk") && lit.some((element) => element.matches(".chunk"))) {
    record.classList.add("focusing");
    lit.push(record);
    for (const mark of $$(".closest.lit", record)) {
      const box = mark.closest(".text");
      box.scrollTop = mark.offsetTop - box.offsetTop - 24; // the sentence, with a line before it
    }
  }
}

document.addEventListener("mouseover", (event) => light(event.target));
document.addEventListener("focusin", (event) => light(event.target));
list.addEventListener("click", (event) => {
  if (!event.target.closest(".list li, .left mark, .left a.ref") || event.target.closest(".chips a")) return;
  light(event.target);
  const chunk = lit.find((element) => element.matches(".chunk"));
  const side = chunk?.closest(".right");
  if (side) side.scrollTop = chunk.offsetTop - side.offsetTop - 8;
});

// --- events: without a script the controls stay hidden or disabled ---

$("#unscripted")?.remove();
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
for (const button of $$("[data-label], [data-verdict], [data-part], [data-slice]")) {
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    // Two values of one key have no record in common.
    for (const other of $$(`[data-slice="${button.dataset.slice}"]`)) other.setAttribute("aria-pressed", false);
    button.setAttribute("aria-pressed", on);
    filter();
  });
}
for (const button of $$(".pager button")) {
  button.addEventListener("click", async () => {
    const to = { "-all": 0, "-1": page - 1, "+1": page + 1, "+all": Infinity }[button.dataset.turn];
    await turn(to);
    $(".records").scrollIntoView({ block: "start" });
  });
}
$("#find").value = $("#status").value = ""; // browsers keep the typed text over a reload
$("#order").value = "place";

async function openTarget() {
  const id = location.hash.slice(1);
  const place = Number(/^e(\d+)/.exec(id)?.[1] ?? NaN);
  if (place < rows.length && !document.getElementById(id)) {
    let at = shown.findIndex((row) => row.place === place);
    if (at < 0) {
      $("#find").value = $("#status").value = "";
      for (const button of $$("[aria-pressed=true]:not([data-order])")) button.setAttribute("aria-pressed", false);
      await filter();
      at = shown.findIndex((row) => row.place === place);
    }
    await turn(Math.floor(at / index.size));
  }
  const target = id && document.getElementById(id);
  if (!target) return;
  let around = target.closest("details");
  while (around) {
    around.open = true;
    around = around.parentElement.closest("details");
  }
  target.scrollIntoView({ block: "nearest" });
}
addEventListener("hashchange", openTarget);
filter().then(openTarget);
