// Elements, numbers as people read them, and colours. Text is text: nothing here reads markup.
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

function put(parent, name, settings, ...children) {
  const made = parent && parent.namespaceURI === SVG && parent.tagName !== "foreignObject" || name === "svg"
    ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(settings || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "text") made.textContent = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children) made.append(child);
  if (parent) parent.append(made);
  return made;
}

function clear(element) { element.replaceChildren(); return element; }

function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-4 ? value.toExponential(Math.max(0, digits - 2))
    : size >= 1e4 ? Math.round(value).toLocaleString("en-US")
    : String(Number(value.toPrecision(digits)));
  return text.replace("-", "\u2212");
}

function count(value) { return value.toLocaleString("en-US"); }

function percent(value) { return value === null ? "–" : number(100 * value, 3) + "%"; }

function cell(value) { return value === null ? "missing" : typeof value === "number" ? number(value) : value; }

function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

function mixed(a, b, share) {
  const parse = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  const [from, to] = [parse(a), parse(b)];
  return from.map((one, k) => Math.round(one + (to[k] - one) * share));
}

// The colour of a share between 0 and 1 on a ramp of three colours.
function ramp(kind, share) {
  const names = ["low", "mid", "high"].map((one) => colour(`--${kind}-${one}`));
  const at = Math.max(0, Math.min(1, share)) * 2;
  return at <= 1 ? mixed(names[0], names[1], at) : mixed(names[1], names[2], at - 1);
}

function css(rgb) { return `rgb(${rgb.join(",")})`; }

function inkOn(rgb) { return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] < 140 ? "#ffffff" : "#1c2430"; }

// Numbers that were written as bytes between the smallest and the largest; null is a gap.
function decoded(coded) {
  const bytes = atob(coded.bytes);
  const found = new Array(bytes.length);
  for (let k = 0; k < bytes.length; k++) {
    const code = bytes.charCodeAt(k);
    found[k] = code === 255 ? null : coded.low + (coded.high - coded.low) * code / 254;
  }
  return found;
}

// What is drawn for a width is drawn again when the width or the theme changes.
const drawings = new Map();
const painters = [];
function drawing(parent, draw) {
  const box = put(parent, "div", {});
  drawings.set(box, draw);
  return box;
}
function redraw() {
  for (const paint of painters) paint();
  for (const [box, draw] of drawings) {
    if (!box.isConnected) { drawings.delete(box); continue; }
    const width = Math.floor(box.clientWidth);
    if (width > 0) draw(clear(box), width);
  }
}
