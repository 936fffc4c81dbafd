// A row that is predicted badly: what was observed and predicted, and which features are why.
function saidOf(output, values) {
  if (output.kind === "class" || output.kind === "label") return `observed ${values[0] ? "yes" : "no"}, predicted probability ${percent(values[1])}`;
  const what = output.kind === "quantile" ? "predicted quantile" : "predicted";
  return `observed ${number(values[0])}, ${what} ${number(values[1])}`;
}

function rowCard(parent, row, level, head, text, what) {
  const card = put(parent, "article", { class: "row-card", tabindex: -1 });
  put(card, level, { text: head });
  put(card, "p", { text });
  if (row.reasons.length === 0) { put(card, "p", { class: "faint", text: "No feature adds anything." }); return; }
  bars(card, row.reasons.map(([feature, value, added]) => ({ name: `${data.features[feature]} = ${cell(value)}`, value: added })), true);
  put(card, "p", { class: "faint", text: what });
}

const FIRST_ROWS = 6;

function worstRows(parent) {
  const grid = put(parent, "div", { class: "two", id: "worst-rows" });
  fillRows(grid, data.worst.slice(0, FIRST_ROWS));
  if (data.worst.length <= FIRST_ROWS) return;
  const more = put(parent, "button", { type: "button", text: `Show all ${count(data.worst.length)}`, "aria-controls": "worst-rows",
    onclick: () => { fillRows(grid, data.worst.slice(FIRST_ROWS)); more.remove(); grid.children[FIRST_ROWS].focus(); } });
}

function fillRows(grid, rows) {
  for (const row of rows) {
    if (row.true !== undefined) {
      const [said, truth] = [data.outputs[row.said].name, data.outputs[row.true].name];
      rowCard(grid, row, "h3", `Row ${count(row.row)}`, `It is ${truth} (predicted probability ${percent(row.p[1])}), and was taken for ${said} (${percent(row.p[0])}).`,
        `Shapley values: right speaks for ${said}, left for ${truth}.`);
    } else {
      const output = data.outputs[row.output];
      const many = data.outputs.length > 1 ? `Most wrong about ${output.name}: ` : `${output.name}: `;
      rowCard(grid, row, "h3", `Row ${count(row.row)}`, many + saidOf(output, row.values), "Shapley values: what features add to the raw score.");
    }
  }
}
