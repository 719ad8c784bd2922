// Line charts as SVG: several series, told apart by colour, dashes and markers.

import { el, isShortcut, svg } from "./dom.js";

const LEFT = 46;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 36;
const DASHES = ["", "7 4", "2 4", "10 3 2 3", "5 2", "1 3"];
export const COLORS = ["var(--series-0)", "var(--series-1)", "var(--series-2)", "var(--series-3)", "var(--series-4)", "var(--series-5)"];

function niceStep(span, count) {
  const raw = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
}

function ticks(low, high, count, whole = false) {
  if (!(high > low)) return [low];
  const step = Math.max(niceStep(high - low, count), whole ? 1 : 0);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) found.push(Number(at.toPrecision(12)));
  return found.length < 2 && count < 16 ? ticks(low, high, 2 * count, whole) : found; // one number is no scale
}

export function tick(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
  return String(Number(value.toPrecision(4)));
}

// series: [{name, points: [[x, y], ...], style: number, color}]. Options: width, height, y: [low, high], xName, yTick(value),
// whole: ticks of x are whole numbers, middle: a y to draw a line at, marks: [{x, y, kind, title}], at: an x to mark, label: words for screen readers.
export function lineChart(series, options = {}) {
  const { width = 560, height = 190, xName = "", yTick = tick, middle, marks = [], at, label } = options;
  const points = series.flatMap((one) => one.points);
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const [left, right] = options.x ?? (xs.length ? [Math.min(...xs), Math.max(...xs)] : [0, 1]);
  let [low, high] = options.y ?? (ys.length ? [Math.min(...ys), Math.max(...ys)] : [0, 1]);
  if (high === low) [low, high] = [low - (Math.abs(low) || 1) / 10, high + (Math.abs(high) || 1) / 10];
  const span = right - left || 1;
  const px = (x) => LEFT + ((x - left) / span) * (width - LEFT - RIGHT);
  const py = (y) => TOP + ((high - y) / (high - low)) * (height - TOP - BOTTOM);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: label ? "img" : null, "aria-label": label, "aria-hidden": label ? null : "true" });
  for (const y of options.yTicks ?? ticks(low, high, height / 45)) {
    root.append(
      svg("line", { x1: LEFT, x2: width - RIGHT, y1: py(y), y2: py(y), class: y === middle ? "axis" : "grid" }),
      svg("text", { x: LEFT - 6, y: py(y) + 4, "text-anchor": "end" }, yTick(y)),
    );
  }
  for (const x of ticks(left, right, width / 80, options.whole)) {
    root.append(svg("text", { x: px(x), y: height - BOTTOM + 16, "text-anchor": "middle" }, tick(x)));
  }
  if (xName) root.append(svg("text", { x: width - RIGHT, y: height - 4, "text-anchor": "end", class: "name" }, xName));
  if (at !== undefined) root.append(svg("line", { x1: px(at), x2: px(at), y1: TOP, y2: height - BOTTOM, class: "here" }));
  series.forEach((one, i) => {
    const style = one.style ?? i;
    const d = one.points.map(([x, y], k) => `${k ? "L" : "M"}${px(x).toFixed(1)} ${py(y).toFixed(1)}`).join("");
    const stroke = one.color ?? COLORS[style % COLORS.length];
    root.append(svg("path", { d, class: "curve", stroke, "stroke-dasharray": DASHES[style % DASHES.length] }));
    if (one.points.length < 60) {
      for (const [x, y] of one.points) root.append(svg("circle", { cx: px(x), cy: py(y), r: 2.4, fill: stroke }));
    }
  });
  for (const { x, y, kind, title } of marks) {
    root.append(svg("path", { d: `M${px(x)} ${py(y) - 6}l6 6l-6 6l-6 -6Z`, class: `judged-${kind}` }, svg("title", {}, title)));
  }
  return root;
}

// Makes the box around a chart a slider along its x axis. The box stays while charts in it are replaced.
// place() gives {last, at, width}: x goes from 0 to last, is now at `at`, and the chart is so wide.
export function pickable(box, place, onPick) {
  box.addEventListener("click", (event) => {
    const { last, width } = place();
    const bounds = box.firstChild.getBoundingClientRect();
    const share = (((event.clientX - bounds.left) / bounds.width) * width - LEFT) / (width - LEFT - RIGHT);
    onPick(Math.round(Math.max(0, Math.min(1, share)) * last));
  });
  box.addEventListener("keydown", (event) => {
    const { last, at } = place();
    const wanted = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
    if (wanted === undefined || isShortcut(event)) return;
    event.preventDefault();
    event.stopPropagation();
    onPick(Math.max(0, Math.min(last, wanted)));
  });
}

// The names of the series beside their lines.
export function legend(series) {
  return el("ul", { class: "legend" }, series.map((one, i) => {
    const style = one.style ?? i;
    const line = svg("line", { x1: 1, x2: 27, y1: 6, y2: 6, stroke: one.color ?? COLORS[style % COLORS.length], "stroke-width": 3, "stroke-dasharray": DASHES[style % DASHES.length] });
    return el("li", {}, svg("svg", { width: 28, height: 12, "aria-hidden": "true" }, line), one.name);
  }));
}
