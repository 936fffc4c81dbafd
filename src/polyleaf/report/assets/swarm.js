// Shapley values of rows as points, a line for each feature: those that would overlap move aside.
function swarm(parent, coded, ranks) {
  const [features, points] = coded;
  const values = decoded(points);
  const n = values.length / features.length;
  const legend = put(parent, "p", { class: "faint" });
  legend.append("Value of the feature: low");
  put(legend, "span", { class: "ramp point" });
  legend.append("high");
  drawing(parent, (box, width) => {
    const lineHeight = 40;
    const x = extent([...values, 0]);
    const names = Math.min(180, Math.max(80, width * 0.3));
    const height = features.length * lineHeight + 44;
    const svg = put(box, "svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `Shapley values of ${n} rows for ${features.length} features` });
    const toX = (value) => names + 6 + (value - x[0]) / (x[1] - x[0]) * (width - names - 16);
    const bottom = features.length * lineHeight;
    for (const one of ticks(x[0], x[1], Math.max(2, Math.floor((width - names) / 80)))) {
      put(svg, "line", { class: "grid", x1: toX(one), x2: toX(one), y1: 0, y2: bottom });
      put(svg, "text", { x: toX(one), y: bottom + 16, "text-anchor": toX(one) > width - 24 ? "end" : "middle", text: number(one, 3) });
    }
    put(svg, "line", { class: "axis", x1: toX(0), x2: toX(0), y1: 0, y2: bottom });
    put(svg, "text", { x: (names + width) / 2, y: height - 6, "text-anchor": "middle", text: "what it adds to the raw score" });
    features.forEach((feature, line) => {
      const middle = (line + 0.5) * lineHeight;
      const text = put(svg, "text", { class: "strong", x: names - 4, y: middle + 4, "text-anchor": "end" });
      fit(text, data.features[feature], names - 6);
      put(text, "title", { text: data.features[feature] });
      const own = values.slice(line * n, (line + 1) * n);
      const rank = decoded({ low: 0, high: 1, bytes: ranks[feature] });
      const used = new Map();
      own.forEach((value, k) => {
        const at = toX(value), slot = Math.round(at / 4);
        const level = used.get(slot) || 0;
        used.set(slot, level + 1);
        const aside = Math.min(lineHeight / 2 - 3, Math.ceil(level / 2) * 3.2) * (level % 2 ? 1 : -1);
        const fill = rank[k] === null ? colour("--point-gap") : css(ramp("point", rank[k]));
        put(svg, "circle", { cx: at.toFixed(1), cy: (middle + aside).toFixed(1), r: 2.4, fill, "fill-opacity": 0.85 });
      });
    });
  });
}

// Writes a name that takes no more room than there is.
function fit(text, name, room) {
  for (let most = Math.min(name.length, Math.ceil(room / 4)); most > 0; most--) {
    text.textContent = shortened(name, most);
    if (text.getComputedTextLength() <= room) return;
  }
}

function shortened(name, most) {
  if (name.length <= most) return name;
  const head = Math.floor((most - 1) * 2 / 3);
  return `${name.slice(0, head)}…${name.slice(name.length - (most - 1 - head))}`;
}
