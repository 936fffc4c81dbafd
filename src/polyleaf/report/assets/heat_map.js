// Features x outputs on a canvas; arrow keys move over its cells, and Enter shows the output.
function heatMap(parent, map, choose) {
  const shares = map.values[0] ? map.values[0].map((_, k) => map.values.reduce((sum, row) => sum + row[k], 0)) : [];
  let relative = true, at = [0, 0];
  const controls = put(parent, "div", { class: "controls" });
  const label = put(controls, "label", { class: "beside" });
  const box = put(label, "input", { type: "checkbox", id: "relative", onchange: () => { relative = box.checked; paint(); tell(); } });
  box.checked = true;
  label.append("as a share of each output");
  const legend = put(controls, "span", { class: "faint" });
  legend.append("less");
  put(legend, "span", { class: "ramp heat" });
  legend.append("more");
  const holder = put(parent, "div", { class: "map" });
  const names = put(holder, "div", { class: "map-names", "aria-hidden": "true" });
  const scroll = put(holder, "div", { class: "map-scroll" });
  const canvas = put(scroll, "canvas", {
    tabindex: 0, role: "application", "aria-describedby": "map-status",
    "aria-label": `Mean absolute Shapley values of ${map.features.length} features and ${map.outputs.length} outputs. Arrow keys move over the cells, Enter shows the output.`,
  });
  const status = put(parent, "p", { class: "status", id: "map-status", "aria-live": "polite" });
  const nameOf = (k) => data.outputs[map.outputs[k]].name;
  const rowHeight = 18;
  const longest = Math.min(18, Math.max(...map.outputs.map((_, k) => nameOf(k).length)));
  const head = Math.round(longest * 6.4 + 12);
  const value = (line, k) => relative ? (shares[k] > 0 ? map.values[line][k] / shares[k] : 0) : map.values[line][k];
  let cellWidth = 14;

  function paint() {
    const room = scroll.clientWidth;
    if (room === 0) return;
    cellWidth = Math.max(14, Math.min(60, Math.floor(room / map.outputs.length)));
    const width = cellWidth * map.outputs.length, height = head + rowHeight * map.features.length;
    const scale = Math.min(window.devicePixelRatio || 1, 16000 / width, Math.sqrt(12e6 / (width * height)));
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    let most = 0;
    map.features.forEach((_, line) => map.outputs.forEach((_, k) => { most = Math.max(most, value(line, k)); }));
    const colours = Array.from({ length: 65 }, (_, k) => css(ramp("heat", k / 64)));
    map.features.forEach((_, line) => map.outputs.forEach((_, k) => {
      pen.fillStyle = colours[Math.round(64 * (most > 0 ? value(line, k) / most : 0))];
      pen.fillRect(k * cellWidth, head + line * rowHeight, cellWidth - 0.5, rowHeight - 0.5);
    }));
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = colour("--ink");
    map.outputs.forEach((_, k) => {
      pen.save();
      pen.translate((k + 0.5) * cellWidth + 4, head - 6);
      pen.rotate(-Math.PI / 2);
      pen.fillText(shortened(nameOf(k), 18), 0, 0, head - 8);
      pen.restore();
    });
    if (document.activeElement === canvas) {
      pen.strokeStyle = colour("--for");
      pen.lineWidth = 2;
      pen.strokeRect(at[1] * cellWidth + 1, head + at[0] * rowHeight + 1, cellWidth - 2.5, rowHeight - 2.5);
    }
    clear(names);
    put(names, "div", {}).style.height = `${head}px`;
    for (const feature of map.features) put(names, "div", { text: data.features[feature], title: data.features[feature] });
  }

  function tell() {
    const [line, k] = at;
    status.textContent = `${data.features[map.features[line]]} → ${nameOf(k)}: mean |SHAP| ${number(map.values[line][k])}` +
      (shares[k] > 0 ? `, ${percent(map.values[line][k] / shares[k])} of what is drawn of this output` : "");
  }

  function move(line, k) {
    at = [Math.max(0, Math.min(map.features.length - 1, line)), Math.max(0, Math.min(map.outputs.length - 1, k))];
    const left = at[1] * cellWidth;
    if (left < scroll.scrollLeft) scroll.scrollLeft = left;
    if (left + cellWidth > scroll.scrollLeft + scroll.clientWidth) scroll.scrollLeft = left + cellWidth - scroll.clientWidth;
    paint();
    tell();
  }

  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  canvas.addEventListener("keydown", (event) => {
    if (event.key in steps) { event.preventDefault(); move(at[0] + steps[event.key][0], at[1] + steps[event.key][1]); }
    if (event.key === "Enter") choose(map.outputs[at[1]], true);
  });
  const place = (event) => {
    const inside = canvas.getBoundingClientRect();
    return [Math.floor((event.clientY - inside.top - head) / rowHeight), Math.floor((event.clientX - inside.left) / cellWidth)];
  };
  canvas.addEventListener("pointermove", (event) => {
    const [line, k] = place(event);
    if (line >= 0 && line < map.features.length && k >= 0 && k < map.outputs.length) { at = [line, k]; tell(); }
  });
  canvas.addEventListener("click", (event) => { const [line, k] = place(event); if (k >= 0 && k < map.outputs.length) { move(line, k); choose(map.outputs[k], false); } });
  canvas.addEventListener("focus", () => { paint(); tell(); });
  canvas.addEventListener("blur", paint);
  painters.push(paint);
}
