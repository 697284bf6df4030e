(() => {
  'use strict';
  const find = (id) => document.getElementById(id);
  const data = JSON.parse(find('data').textContent);
  const name = `claimspan-labels-${data.id}`;
  const choices = [...document.querySelectorAll('[data-label]')];
  let labels = kept();
  let history = [];
  let at = 0;

  // --- what the browser keeps ---

  function kept() {
    const found = {};
    try {
      const stored = JSON.parse(localStorage.getItem(name) || '{}');
      // Other pages of the same folder may write here: nothing but labels is taken.
      for (const [place, label] of Object.entries(stored)) {
        if (data.claims[place] && /^[ENCU]$/.test(label)) found[place] = label;
      }
    } catch {
      find('unkept').hidden = false;
    }
    return found;
  }

  function keep() {
    try {
      localStorage.setItem(name, JSON.stringify(labels));
    } catch {
      find('unkept').hidden = false;
    }
  }

  // --- labelling ---

  function give(label) {
    history.push([at, labels[at]]);
    labels[at] = label;
    keep();
    show(following());
  }

  // The next claim without a label, from here on and then from the beginning.
  function following() {
    const n = data.claims.length;
    for (let step = 1; step < n; step += 1) {
      if (!labels[(at + step) % n]) return (at + step) % n;
    }
    return at;
  }

  function undo() {
    const last = history.pop();
    if (!last) return;
    const [place, before] = last;
    if (before) labels[place] = before;
    else delete labels[place];
    keep();
    show(place);
  }

  function move(step) {
    const to = at + step;
    if (to >= 0 && to < data.claims.length) show(to);
  }

  // --- the page ---

  // Always as text: what a chunk holds is never markup.
  function element(tag, text, kind) {
    const made = document.createElement(tag);
    made.textContent = text;
    made.dir = 'auto';
    if (kind) made.className = kind;
    return made;
  }

  function show(place) {
    at = place;
    const claim = data.claims[at];
    const record = data.records[claim.place];
    find('place').textContent = `Claim ${at + 1} of ${data.claims.length}`;
    find('claim').textContent = claim.text;
    find('sentence').textContent = claim.sentence ? `From: ${claim.sentence}` : '';
    find('sentence').hidden = !claim.sentence;
    find('question').textContent = record.question;
    find('response').textContent = record.response;
    find('left-out').textContent = `${record.left_out} more chunks were not recorded.`;
    find('left-out').hidden = !record.left_out;
    showChunks(record.chunks, claim.closest);
    showLabels();
    scrollTo(0, 0);
    // A screen reader reads the claim on; keys are pressed without looking for a button.
    find('claim').focus({ preventScroll: true });
  }

  function showChunks(chunks, closest) {
    const near = [];
    const articles = chunks.map((text, number) => {
      const article = element('article', '', 'chunk');
      article.append(element('h4', `Chunk ${number + 1}`));
      const shown = element('p', '');
      const points = Array.from(text);
      const [start, end] = closest[number] || [points.length, points.length];
      const sentence = points.slice(start, end).join('');
      shown.append(points.slice(0, start).join(''));
      if (sentence) {
        shown.append(element('mark', sentence));
        const item = element('li', `${sentence} `);
        item.append(element('small', `(chunk ${number + 1})`));
        near.push(item);
      }
      shown.append(points.slice(end).join(''));
      article.append(shown);
      return article;
    });
    find('chunks').replaceChildren(...articles);
    find('closest').replaceChildren(...near);
    find('near').hidden = !near.length;
  }

  function showLabels() {
    const n = Object.keys(labels).length;
    find('bar').value = n;
    find('progress').textContent = `${n} of ${data.claims.length} labelled`;
    find('done').hidden = n < data.claims.length;
    find('undo').disabled = !history.length;
    find('back').disabled = at === 0;
    find('next').disabled = at === data.claims.length - 1;
    find('download').disabled = !n;
    for (const button of choices) {
      button.setAttribute('aria-pressed', String(labels[at] === button.dataset.label));
    }
  }

  // --- the file ---

  function cell(value) {
    const text = String(value);
    return /^[\w.:-]*$/.test(text) ? text : `"${text.replaceAll('"', '""')}"`;
  }

  function csv() {
    const rows = Object.entries(labels).map(([place, label]) => {
      const [record, number, digest, share, claims] = data.claims[place].cells;
      return [record, number, digest, label, share, claims];
    });
    return [data.columns, ...rows].map((row) => `${row.map(cell).join(',')}\n`).join('');
  }

  function download() {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([csv()], { type: 'text/csv' }));
    link.download = 'labels.csv';
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }

  // --- keys and buttons ---

  const KEYS = { ArrowLeft: () => move(-1), ArrowRight: () => move(1), z: undo, Backspace: undo };
  for (const letter of 'ENCU') KEYS[letter.toLowerCase()] = () => give(letter);

  document.addEventListener('keydown', (event) => {
    // With a modifier a key is the browser's own, such as undo and copy; a key held down would
    // label claims that nobody has read.
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const action = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  for (const button of choices) {
    button.addEventListener('click', () => give(button.dataset.label));
  }
  find('back').addEventListener('click', () => move(-1));
  find('next').addEventListener('click', () => move(1));
  find('undo').addEventListener('click', undo);
  find('download').addEventListener('click', download);

  find('work').hidden = false;
  at = data.claims.length - 1;
  show(following());
})();
