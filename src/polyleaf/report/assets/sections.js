// The sections of the report, one function each; one that has nothing to show stays hidden.
const KINDS = { regression: "numbers", quantiles: "quantiles", multiclass: "classes", binary: "two classes", multilabel: "labels" };
const ESTIMATORS = { regressor: "PolyleafRegressor", classifier: "PolyleafClassifier", mixed: "PolyleafMixed" };

function overview(section) {
  const facts = put(section, "dl", { class: "facts" });
  for (const group of data.groups) {
    for (const [name, ...score] of group.scores) fact(facts, data.groups.length > 1 ? `${group.name}: ${name}` : name, score);
  }
  put(section, "p", { class: "faint", text: `Scores of ${count(data.data.rows)} rows. Below them are ${percent(data.intervals.level)} intervals: rows drawn again ${count(data.intervals.draws)} times` +
    (data.intervals.groups < data.data.rows ? `, in ${count(data.intervals.groups)} groups.` : ".") });
  const made = table(section, "Data and model", [{ text: "what" }, { text: "value" }]);
  made.scroll.classList.add("whole");
  const line = (name, text) => { const row = put(made.body, "tr", {}); put(row, "th", { scope: "row", text: name }); put(row, "td", { text }); };
  line("estimator", `${ESTIMATORS[data.model.estimator]}, polyleaf ${data.model.version}`);
  line("rounds", data.model.best_round === data.model.rounds ? count(data.model.rounds) : `${count(data.model.best_round)} of ${count(data.model.rounds)} (the best)`);
  line("trees and leaves", `${count(data.model.trees)} trees, ${count(data.model.leaves)} leaves`);
  line("rows of this report", count(data.data.rows) + (data.data.weighted ? ", weighted" : ""));
  line("features", `${count(data.data.features)}${data.data.sparse ? ", as a sparse table" : ""}`);
  if (data.data.categorical.length) line("categorical features", some(data.data.categorical));
  line("missing cells", count(data.data.missing));
  for (const group of data.groups) line(data.groups.length > 1 ? `target ${group.name}` : "target", `${group.name}: ${KINDS[group.kind]}, ${count(group.n_outputs)} output${group.n_outputs === 1 ? "" : "s"}, loss ${group.objective}`);
  const changed = data.params.filter((one) => one.changed);
  line("parameters that were set", changed.length ? changed.map((one) => `${one.name}=${one.value}`).join(", ") : "none: all as by default");
}

function some(names) { return names.slice(0, 20).join(", ") + (names.length > 20 ? `, … (${count(names.length)})` : ""); }

function scores(section, choose) {
  put(section, "p", { class: "faint", text: `With ${percent(data.intervals.level)} intervals. R² and D²: 1 is perfect, 0 what a constant reaches; of classes and labels, R² of the probability. A name leads to its output.` });
  data.groups.forEach((group, k) => {
    const numbers = data.outputs.map((_, j) => j).filter((j) => data.outputs[j].group === k);
    if (numbers.length === 0) return;
    if (data.groups.length > 1) put(section, "h3", { text: group.name });
    scoreTable(section, group, numbers, choose);
  });
}

function training(section) {
  if (data.curves.length === 0) return;
  section.hidden = false;
  const bests = [...new Set(data.best_rounds)];
  const said = bests.length === 1 ? `the dashed line is the best round, ${count(bests[0])}` : `the best rounds of the sets are ${data.best_rounds.map(count).join(", ")}`;
  put(section, "p", { class: "faint", text: `After each round; ${said}.` });
  const two = put(section, "div", { class: "two" });
  for (const one of data.curves) lineChart(figure(two, one.metric), one.sets, bests.length === 1 ? bests[0] : 0, { label: `Training curve of ${one.metric}`, x: "round", y: "" });
}

const MEASURES = { shap: "mean |SHAP|, mean of outputs", gain: "gain of splits", split: "number of splits", cover: "rows told apart" };

function importance(section) {
  const controls = put(section, "div", { class: "controls" });
  const select = put(put(controls, "label", { text: "Share of all features in" }), "select", { id: "importance-kind", onchange: fill });
  for (const [key, text] of Object.entries(MEASURES)) put(select, "option", { value: key, text });
  const all = put(controls, "button", { type: "button", "aria-expanded": "false", onclick: () => { more = !more; fill(); } });
  let more = false;
  const box = put(section, "div", {});
  function fill() {
    const shares = data.importance[select.value];
    const order = shares.map((_, k) => k).sort((a, b) => shares[b] - shares[a] || a - b);
    const first = order.slice(0, more ? order.length : 20);
    clear(box);
    bars(box, first.map((k) => ({ name: data.features[data.importance.features[k]], value: shares[k], text: percent(shares[k]) })), false);
    all.hidden = order.length <= 20;
    all.textContent = more ? "Show 20" : `Show ${count(order.length)}`;
    all.setAttribute("aria-expanded", String(more));
  }
  fill();
}

function mapSection(section, choose) {
  put(section, "p", { class: "faint", text: `Which features move which outputs: mean |SHAP| over ${count(data.explained.rows)} rows${data.explained.rows < data.data.rows ? `, drawn with seed ${data.explained.seed}` : ""}. Neighbours are alike. A click shows the output.${data.heat_map.outputs.length > 20 ? ` It scrolls sideways over ${count(data.heat_map.outputs.length)} outputs.` : ""}` });
  heatMap(section, data.heat_map, choose);
}

function calibration(section) {
  data.groups.forEach((group) => {
    if (!group.reliability) return;
    section.hidden = false;
    const words = group.n_outputs > 1 ? `${group.name}: all ${KINDS[group.kind]} together` : group.name;
    reliability(section, group.reliability, words, words);
  });
}

function coverage(section) {
  for (const group of data.groups) {
    if (!group.coverage || group.coverage.length === 0) continue;
    section.hidden = false;
    put(section, "p", { class: "faint", text: "How often targets are at or below each predicted quantile, beside how often they should be." });
    const two = put(section, "div", { class: "two" });
    for (const target of group.coverage.slice(0, 12)) {
      const points = target.levels.map(([level, share, low, high]) => ({ x: level, y: share, low, high, title: `level ${level}: ${percent(share)}` }));
      diagonal(figure(two, target.target), points, { label: `Coverage of ${target.target}`, x: "level", y: "observed share" });
    }
    const made = table(section, "Coverage as numbers", ["target", "level", "observed", "interval"].map((text, k) => ({ text, class: k ? "number" : "" })));
    for (const target of group.coverage) {
      const lines = target.levels.map((one) => [number(one[0]), ...one.slice(1)]);
      if (target.between) lines.push([`between: ${number(target.between[0])}`, ...target.between.slice(1)]);
      for (const [level, share, low, high] of lines) {
        const line = put(made.body, "tr", {});
        put(line, "th", { scope: "row", text: target.target });
        put(line, "td", { class: "number", text: level });
        put(line, "td", { class: "number", text: percent(share) });
        put(line, "td", { class: "number", text: low === null ? "–" : `${percent(low)} to ${percent(high)}` });
      }
    }
  }
}

function confusion(section) {
  for (const group of data.groups) {
    const found = group.confusion;
    if (!found) continue;
    section.hidden = false;
    if (data.groups.length > 1) put(section, "h3", { text: found.target });
    if (found.table) {
      const sums = found.table.map((row) => row.reduce((a, b) => a + b, 0));
      const made = table(section, `Confusion of ${found.target}`, [{ text: "is ↓ taken for →" }, ...found.classes.map((text) => ({ text, class: "number" }))]);
      made.scroll.classList.add("confusion");
      const cells = [];
      found.table.forEach((row, k) => {
        const line = put(made.body, "tr", {});
        put(line, "th", { scope: "row", text: found.classes[k], title: found.classes[k] });
        row.forEach((value, j) => cells.push([put(line, "td", { text: value ? number(value) : "", title: `${found.classes[k]} taken for ${found.classes[j]}: ${number(value)}` }), sums[k] > 0 ? value / sums[k] : 0]));
      });
      const paint = () => cells.forEach(([place, share]) => { const rgb = ramp("heat", share); place.style.background = css(rgb); place.style.color = inkOn(rgb); });
      painters.push(paint);
    }
    put(section, "h3", { text: found.pairs.length ? "Most often confused" : "No row is taken for another class." });
    if (!found.pairs.length) continue;
    if (found.pairs.length < found.n_pairs) put(section, "p", { class: "faint", text: `${count(found.pairs.length)} of ${count(found.n_pairs)} pairs` });
    const made = table(section, "Most often confused", ["is", "taken for", "rows", "of its class"].map((text, k) => ({ text, class: k > 1 ? "number" : "" })));
    for (const [truth, said, weight, share] of found.pairs) {
      const line = put(made.body, "tr", {});
      put(line, "th", { scope: "row", text: found.classes[truth] });
      put(line, "td", { text: found.classes[said] });
      put(line, "td", { class: "number", text: number(weight) });
      put(line, "td", { class: "number", text: percent(share) });
    }
  }
}

function worst(section) {
  if (data.worst.length === 0) return;
  section.hidden = false;
  put(section, "p", { class: "faint", text: `The ${count(data.worst.length)} rows with the largest sum of errors over all outputs (squared errors, of numbers in units of their variance; of quantiles, pinball losses in units of a constant's), counted from 0 in the table.` });
  worstRows(section);
}

function leftOut(section) {
  if (data.left_out.length === 0) put(section, "p", { text: "Nothing: all rows, features and outputs are in this report." });
  for (const one of data.left_out) {
    const words = `${count(one.count)} of ${count(one.of)} ${one.what}`;
    if (one.names.length === 0) { put(section, "p", { text: words }); continue; }
    const details = put(section, "details", {});
    put(details, "summary", { text: words });
    put(details, "p", { text: one.names.join(", ") + (one.names.length < one.count ? ", …" : "") });
  }
}

function settings(section) {
  put(section, "p", { class: "faint", text: "All parameters; those that are not what they are by default are bold." });
  const made = table(section, "Parameters", [{ text: "parameter" }, { text: "value" }, { text: "default" }, { text: "meaning", class: "optional" }]);
  for (const one of [...data.params].sort((a, b) => b.changed - a.changed)) {
    const line = put(made.body, "tr", { class: one.changed ? "changed" : null });
    put(line, "th", { scope: "row", text: one.name });
    put(line, "td", { text: one.value });
    put(line, "td", { text: one.default });
    put(line, "td", { class: "optional faint", text: one.meaning });
  }
}
