// Puts the page together, and keeps theme and width.
const byId = (id) => document.getElementById(id);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
let chosen = null;

function setTheme() {
  const isDark = chosen === null ? dark.matches : chosen;
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  byId("theme").textContent = isDark ? "Light theme" : "Dark theme";
  redraw();
}

byId("theme").addEventListener("click", () => {
  chosen = document.documentElement.dataset.theme !== "dark";
  setTheme();
});
dark.addEventListener("change", setTheme);

const choose = (k, go) => showOutput(k, go);
const outputs = data.model.outputs;
byId("subtitle").textContent = `${ESTIMATORS[data.model.estimator]} · ${count(outputs)} output${outputs === 1 ? "" : "s"} · ${count(data.data.features)} features · ${count(data.data.rows)} rows`;
document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
overview(byId("overview"));
scores(byId("scores"), choose);
training(byId("training"));
importance(byId("importance"));
mapSection(byId("heat-map"), choose);
outputView(byId("output"));
calibration(byId("calibration"));
coverage(byId("coverage"));
confusion(byId("confusion"));
worst(byId("worst"));
leftOut(byId("left-out"));
settings(byId("settings"));
for (const section of document.querySelectorAll("main > section")) {
  if (section.hidden) continue;
  put(put(byId("menu"), "li", {}), "a", { href: `#${section.id}`, text: section.querySelector("h2").textContent });
}
setTheme();

let lastWidth = document.documentElement.clientWidth, waiting = 0;
window.addEventListener("resize", () => {
  const width = document.documentElement.clientWidth;
  if (width === lastWidth) return;
  lastWidth = width;
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(redraw);
});
