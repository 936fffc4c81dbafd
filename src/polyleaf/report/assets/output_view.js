// One output at a time: chosen by name, by search, or by the keys of a list.
let current = -1;
let showOutput = () => {};

function outputView(section) {
  const controls = put(section, "div", { class: "controls", role: "group", "aria-label": "Choose an output" });
  let select = null, search = null, status = null, listed = data.outputs.map((_, k) => k);
  const view = put(section, "div", { id: "output-view" });
  if (data.outputs.length > 1) {
    search = put(put(controls, "label", { class: "grow", text: "Find an output" }), "input", { type: "search", id: "output-search", autocomplete: "off", oninput: filter });
    select = put(put(controls, "label", { class: "grow", text: "Output" }), "select", { id: "output-select", onchange: () => show(Number(select.value)) });
    put(controls, "button", { type: "button", id: "output-before", text: "Previous", onclick: () => step(-1) });
    put(controls, "button", { type: "button", id: "output-after", text: "Next", onclick: () => step(1) });
    status = put(controls, "span", { class: "faint", id: "output-status", "aria-live": "polite" });
    filter();
  }

  function filter() {
    const words = search.value.trim();
    listed = data.outputs.map((_, k) => k).filter((k) => matches(data.outputs[k].name, words));
    clear(select);
    for (const k of listed) put(select, "option", { value: k, text: data.outputs[k].name });
    status.textContent = `${count(listed.length)} of ${count(data.outputs.length)} outputs`;
    if (listed.length === 0) return;
    if (listed.includes(current)) select.value = current;
    else if (current >= 0) show(listed[0]);
  }

  function step(by) {
    if (listed.length === 0) return;
    const at = listed.indexOf(current);
    show(listed[(at + by + listed.length) % listed.length]);
  }

  function show(k) {
    current = k;
    if (select) {
      if (!listed.includes(k)) { search.value = ""; filter(); }
      select.value = k;
    }
    draw(clear(view), data.outputs[k]);
    redraw();
  }
  showOutput = (k, go) => {
    show(k);
    if (go) {
      section.scrollIntoView();
      (select || section).focus();
    }
  };
  show(0);
}

const MEANING = { number: "a number", quantile: "a quantile", class: "a class", label: "a label" };

function draw(view, output) {
  const group = data.groups[output.group];
  put(view, "h3", { id: "output-name", text: output.name });
  put(view, "p", { class: "faint", text: `${MEANING[output.kind]}${data.groups.length > 1 ? ` of ${group.name}` : ""}, observed in ${count(output.rows)} rows` });
  const facts = put(view, "dl", { class: "facts" });
  output.scores.forEach((score, j) => { if (score) fact(facts, group.columns[j], score); });
  const two = put(view, "div", { class: "two" });
  const first = put(two, "div", {});
  put(first, "h4", { text: "Features that move it: mean |SHAP|" });
  if (output.features.length) bars(first, output.features.map(([feature, value]) => ({ name: data.features[feature], value })), false);
  else put(first, "p", { class: "faint", text: "No feature moves this output: its prediction is a constant." });
  const second = put(two, "div", {});
  if (output.swarm.length) {
    put(second, "h4", { text: `Rows as points (${count(data.explained.swarm)})` });
    swarm(second, output.swarm, data.ranks);
  }
  dependence(view, output);
  if (output.residuals) {
    const more = put(view, "div", { class: "two" });
    const left = output.residuals;
    const what = output.kind === "quantile" ? "Observed minus predicted quantile" : "Residuals: observed minus predicted";
    histogram(figure(more, what), left.counts, left.low, left.high, { label: `Histogram of residuals of ${output.name}`, x: "residual", y: "rows" });
    const [xs, ys] = left.points.map(decoded);
    scatter(figure(more, `Residuals by prediction (${count(xs.length)} rows)`), xs, ys, { label: `Residuals of ${output.name} by prediction`, x: "predicted", y: "residual" });
  }
  if (output.reliability) {
    reliability(view, output.reliability, "Calibration: of rows with this predicted probability, how many are so", output.name);
  }
  if (output.worst && output.worst.length) {
    put(view, "h4", { text: "Worst rows for this output" });
    const grid = put(view, "div", { class: "two" });
    for (const row of output.worst) {
      rowCard(grid, row, "h5", `Row ${count(row.row)}`, saidOf(output, row.values),
        `Shapley values; raw score ${number(row.raw)}, on average ${number(output.base)}.`);
    }
  }
}

// Mean predictions as the features change that move this output most.
function dependence(view, output) {
  if (output.dependence.length === 0) return;
  const named = output.dependence.some(([k]) => data.dependence.features[k].categorical);
  put(view, "h4", { text: `As a feature changes: mean prediction of ${count(data.dependence.rows)} rows` });
  put(view, "p", { class: "faint", text: `A feature is set to this value in all rows, the others stay as they are. Lines have one scale${named ? "; bars of categories are differences from their mean" : ""}.` });
  const grid = put(view, "div", { class: "three", id: "dependence" });
  const range = extent(output.dependence.flatMap(([, means]) => means));
  for (const [k, means] of output.dependence) {
    const { feature, categorical, values } = data.dependence.features[k];
    const name = data.features[feature];
    const box = figure(grid, name);
    const there = values.map((_, j) => j).filter((j) => values[j] !== null);
    if (categorical || there.length < 2) {
      const middle = means.reduce((sum, one) => sum + one, 0) / means.length;
      bars(box, values.map((value, j) => ({ name: cell(value), value: means[j] - middle, text: number(means[j], 3) })), true);
      continue;
    }
    const sets = [{ name: "value", rounds: there.map((j) => values[j]), values: there.map((j) => means[j]) }];
    const gap = values.indexOf(null);
    if (gap >= 0) sets.push({ name: "missing", rounds: extent(sets[0].rounds), values: [means[gap], means[gap]] });
    lineChart(box, sets, NaN, { label: `${output.name} by ${name}`, range, height: 180 });
  }
}

function figure(parent, words) {
  const made = put(parent, "figure", {});
  put(made, "figcaption", { text: words });
  return made;
}

function fact(parent, name, score) {
  const box = put(parent, "div", { class: "fact" });
  put(box, "dt", { text: name });
  const value = put(box, "dd", { text: number(score[0]) });
  if (score[1] !== null && score[1] !== undefined) put(value, "small", { text: `${number(score[1], 3)} to ${number(score[2], 3)}` });
}

// A chart of probabilities beside what came of them, and how many rows there are of each.
function reliability(parent, found, words, name) {
  const two = put(parent, "div", { class: "two" });
  const points = found.p.map((p, k) => ({
    x: p, y: found.share[k], rows: found.rows[k],
    title: `predicted ${percent(p)}, observed ${percent(found.share[k])}, ${count(found.rows[k])} rows`,
  }));
  const chart = figure(two, words);
  diagonal(chart, points, { label: `Calibration of ${name}`, x: "predicted probability", y: "observed share" });
  put(chart, "p", { class: "faint", text: `Expected calibration error ${number(found.error, 3)}. The larger a point, the more rows.` });
  const rows = put(two, "div", {});
  put(rows, "p", { class: "faint", text: "Rows by predicted probability, and how many of them are so" });
  bars(rows, points.map((point) => ({ name: percent(point.x), value: point.rows, text: `${count(point.rows)}, ${percent(point.y)} are so` })), false);
}
