// Charts of lines and points: a frame with ticks, and what goes into it.
function ticks(low, high, most) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / Math.max(1, most);
  const power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= raw) || 10 * power;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * span; k++) found.push(Math.abs(k * step) < step * 1e-9 ? 0 : k * step);
  return found;
}

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) if (value !== null) { low = Math.min(low, value); high = Math.max(high, value); }
  if (low > high) return [0, 1];
  if (low === high) { const pad = Math.abs(low) / 2 || 1; return [low - pad, high + pad]; }
  return [low, high];
}

// A frame; returns the drawing and the functions from values to places in it.
function frame(box, width, height, x, y, words) {
  const svg = put(box, "svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words.label });
  const yTicks = ticks(y[0], y[1], 5);
  const left = 14 + 7 * Math.max(...yTicks.map((one) => number(one, 3).length)) + (words.y ? 16 : 0);
  const [right, top, bottom] = [10, 8, height - (words.x ? 40 : 24)];
  const toX = (value) => left + (value - x[0]) / (x[1] - x[0]) * (width - left - right);
  const toY = (value) => bottom - (value - y[0]) / (y[1] - y[0]) * (bottom - top);
  for (const one of yTicks) {
    put(svg, "line", { class: "grid", x1: left, x2: width - right, y1: toY(one), y2: toY(one) });
    put(svg, "text", { x: left - 6, y: toY(one) + 4, "text-anchor": "end", text: number(one, 3) });
  }
  for (const one of ticks(x[0], x[1], Math.max(4, Math.floor((width - left) / 80)))) {
    put(svg, "line", { class: "axis", x1: toX(one), x2: toX(one), y1: bottom, y2: bottom + 4 });
    const anchor = toX(one) > width - 24 ? "end" : "middle";
    put(svg, "text", { x: toX(one), y: bottom + 17, "text-anchor": anchor, text: number(one, 3) });
  }
  put(svg, "line", { class: "axis", x1: left, x2: width - right, y1: bottom, y2: bottom });
  if (words.x) put(svg, "text", { x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle", text: words.x });
  if (words.y) put(svg, "text", { transform: `translate(12 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle", text: words.y });
  return { svg, toX, toY, top, bottom, left, right: width - right };
}

const DASHES = ["", "6 3", "2 3", "8 3 2 3"];

function lineChart(parent, sets, best, words) {
  if (sets.length > 1) {
    const legend = put(parent, "ul", { class: "legend" });
    sets.forEach((set, k) => {
      const mark = put(put(legend, "li", {}), "i", {});
      mark.style.borderTopColor = `var(--line-${k % 6})`;
      mark.style.borderTopStyle = ["solid", "dashed", "dotted"][Math.floor(k / 6) % 3];
      mark.parentElement.append(set.name);
    });
  }
  drawing(parent, (box, width) => {
    const x = extent(sets.flatMap((set) => set.rounds)), y = words.range || extent(sets.flatMap((set) => set.values));
    const pad = (y[1] - y[0]) * 0.04;
    const shape = frame(box, width, words.height || 240, x, [y[0] - pad, y[1] + pad], words);
    if (best >= x[0] && best <= x[1]) {
      put(shape.svg, "line", { x1: shape.toX(best), x2: shape.toX(best), y1: shape.top, y2: shape.bottom, stroke: "var(--faint)", "stroke-dasharray": "4 4" });
    }
    sets.forEach((set, k) => {
      let pen = "M";
      const path = set.values.map((value, j) => {
        if (value === null) { pen = "M"; return ""; }
        const step = `${pen}${shape.toX(set.rounds[j]).toFixed(1)} ${shape.toY(value).toFixed(1)}`;
        pen = "L";
        return step;
      }).join("");
      put(shape.svg, "path", { d: path, fill: "none", stroke: `var(--line-${k % 6})`, "stroke-width": 2, "stroke-dasharray": DASHES[Math.floor(k / 6) % 4] });
    });
  });
}

function histogram(parent, counts, low, high, words) {
  drawing(parent, (box, width) => {
    const shape = frame(box, width, 220, [low, high], [0, Math.max(1, ...counts)], words);
    const step = (high - low) / counts.length;
    counts.forEach((value, k) => {
      const x = shape.toX(low + k * step);
      const bar = put(shape.svg, "rect", {
        x: x + 0.5, width: Math.max(0.5, shape.toX(low + (k + 1) * step) - x - 1),
        y: shape.toY(value), height: shape.bottom - shape.toY(value), fill: "var(--bar)",
      });
      put(bar, "title", { text: `${number(low + k * step, 3)} to ${number(low + (k + 1) * step, 3)}: ${count(value)} rows` });
    });
  });
}

function scatter(parent, xs, ys, words) {
  drawing(parent, (box, width) => {
    const shape = frame(box, width, 220, extent(xs), extent([...ys, 0]), words);
    put(shape.svg, "line", { x1: shape.left, x2: shape.right, y1: shape.toY(0), y2: shape.toY(0), stroke: "var(--faint)" });
    xs.forEach((x, k) => put(shape.svg, "circle", { cx: shape.toX(x).toFixed(1), cy: shape.toY(ys[k]).toFixed(1), r: 2.5, fill: "var(--bar)", "fill-opacity": 0.55 }));
  });
}

// Points (expected, observed) beside the diagonal: the larger, the more rows.
function diagonal(parent, points, words) {
  drawing(parent, (box, width) => {
    const side = Math.min(width, 380);
    // Rare classes fill the chart, too.
    const most = Math.min(1, 1.1 * Math.max(0.01, ...points.flatMap((point) => [point.x, point.y, point.high || 0])));
    const shape = frame(box, side, Math.min(300, Math.round(side * 0.8)), [0, most], [0, most], words);
    put(shape.svg, "line", { x1: shape.toX(0), y1: shape.toY(0), x2: shape.toX(most), y2: shape.toY(most), stroke: "var(--faint)", "stroke-dasharray": "4 4" });
    const rows = Math.max(...points.map((point) => point.rows || 1));
    const path = points.map((point, k) => `${k ? "L" : "M"}${shape.toX(point.x)} ${shape.toY(point.y)}`).join("");
    put(shape.svg, "path", { d: path, fill: "none", stroke: "var(--bar)", "stroke-width": 1.5 });
    for (const point of points) {
      if (point.low !== undefined && point.low !== null) put(shape.svg, "line", { x1: shape.toX(point.x), x2: shape.toX(point.x), y1: shape.toY(point.low), y2: shape.toY(point.high), stroke: "var(--bar)", "stroke-width": 2 });
      const mark = put(shape.svg, "circle", { cx: shape.toX(point.x), cy: shape.toY(point.y), r: 3 + 4 * Math.sqrt((point.rows || rows) / rows), fill: "var(--bar)" });
      put(mark, "title", { text: point.title });
    }
  });
}

// Bars as lines of text: a name, a bar, a value. Signed ones grow from the middle.
function bars(parent, rows, signed) {
  const list = put(parent, "ul", { class: signed ? "bars signed" : "bars" });
  const most = Math.max(1e-300, ...rows.map((row) => Math.abs(row.value)));
  for (const row of rows) {
    const line = put(list, "li", {});
    put(line, "span", { class: "name", text: row.name, title: row.name });
    const bar = put(put(line, "span", { class: "track" }), "i", {});
    const share = 100 * Math.abs(row.value) / most;
    if (signed) {
      bar.className = row.value >= 0 ? "for" : "against";
      bar.style.left = row.value >= 0 ? "50%" : `${50 - share / 2}%`;
      bar.style.width = `${share / 2}%`;
    } else bar.style.width = `${share}%`;
    put(line, "span", { class: "value", text: row.text || (signed && row.value > 0 ? "+" : "") + number(row.value, 3) });
  }
  return list;
}
