// Tables: scrollable by keyboard, sorted by their heads, filtered by words.
function table(parent, words, heads) {
  const scroll = put(parent, "div", { class: "scroll", tabindex: 0, role: "region", "aria-label": words });
  const made = put(scroll, "table", {});
  const line = put(put(made, "thead", {}), "tr", {});
  for (const head of heads) put(line, "th", { scope: "col", class: head.class, text: head.onclick ? null : head.text });
  return { head: line, body: put(made, "tbody", {}), scroll };
}

function matches(name, words) {
  const lower = name.toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => lower.includes(word));
}

function scoreText(line, score) {
  const place = put(line, "td", { class: "number" });
  if (!score) { place.textContent = "–"; return; }
  place.append(number(score[0]));
  if (score[1] !== null) put(place, "small", { text: `${number(score[1], 3)} to ${number(score[2], 3)}` });
}

// The outputs of a group with their scores.
function scoreTable(parent, group, numbers, choose) {
  const isClass = ["class", "label"].includes(data.outputs[numbers[0]].kind);
  const heads = ["output", ...group.columns, "rows", isClass ? "share" : "mean"];
  const keys = [
    (k) => data.outputs[k].name,
    ...group.columns.map((_, j) => (k) => data.outputs[k].scores[j] ? data.outputs[k].scores[j][0] : null),
    (k) => data.outputs[k].rows, (k) => data.outputs[k].mean ?? null,
  ];
  const classes = heads.map((_, j) => (j === 0 ? "" : j < heads.length - 2 ? "number" : "number optional"));
  let sorted = -1, down = false, words = "";
  let status = null;
  if (numbers.length > 8) {
    const controls = put(parent, "div", { class: "controls" });
    const label = put(controls, "label", { class: "grow", text: "Find outputs" });
    const search = put(label, "input", { type: "search", autocomplete: "off", oninput: () => { words = search.value.trim(); fill(); } });
    status = put(controls, "span", { class: "faint", "aria-live": "polite" });
  }
  const made = table(parent, `Scores of ${group.name}`, heads.map((text, j) => ({ text, class: classes[j], onclick: true })));
  [...made.head.children].forEach((head, j) => {
    put(head, "button", { type: "button", class: "plain", text: heads[j], title: "Sort by this column",
      onclick: () => { down = sorted === j ? !down : j > 0; sorted = j; fill(); } });
  });
  function fill() {
    const rows = numbers.filter((k) => matches(data.outputs[k].name, words));
    if (sorted >= 0) {
      const sign = down ? -1 : 1;
      rows.sort((a, b) => {
        const [x, y] = [keys[sorted](a), keys[sorted](b)];
        if (x === null || y === null) return (x === null) - (y === null);
        return sign * (typeof x === "string" ? x.localeCompare(y) : x - y) || a - b;
      });
    }
    [...made.head.children].forEach((head, j) => {
      if (j === sorted) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
      head.firstChild.textContent = heads[j] + (j === sorted ? (down ? " ↓" : " ↑") : "");
    });
    clear(made.body);
    for (const k of rows) {
      const output = data.outputs[k];
      const line = put(made.body, "tr", {});
      put(put(line, "th", { scope: "row" }), "button", { type: "button", class: "plain link", text: output.name, onclick: () => choose(k, true) });
      output.scores.forEach((score) => scoreText(line, score));
      put(line, "td", { class: "number optional", text: count(output.rows) });
      put(line, "td", { class: "number optional", text: number(output.mean ?? null) });
    }
    if (status) status.textContent = rows.length === numbers.length ? `${count(rows.length)} outputs` : `${count(rows.length)} of ${count(numbers.length)} outputs`;
  }
  fill();
}
