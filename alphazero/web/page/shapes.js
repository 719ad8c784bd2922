// The geometry of boards: outlines, centers, and the pieces as paths. Lengths are in cells, drawn at SCALE pixels.

import { svg } from "./dom.js";

export const SCALE = 48;
const HOLE = 0.82;

const at = (length) => Number((length * SCALE).toFixed(1));

export function center(outline) {
  const sum = outline.reduce(([x, y], [px, py]) => [x + px, y + py], [0, 0]);
  return [sum[0] / outline.length, sum[1] / outline.length];
}

// The distance from the center to the nearest side.
export function radius(outline) {
  const [x, y] = center(outline);
  return Math.min(...outline.map(([ax, ay], i) => {
    const [bx, by] = outline[(i + 1) % outline.length];
    const side = Math.hypot(bx - ax, by - ay) || 1;
    return Math.abs((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / side;
  }));
}

export function shrunk(outline, share) {
  const [x, y] = center(outline);
  return outline.map(([px, py]) => [x + share * (px - x), y + share * (py - y)]);
}

export function path(points, closed = true) {
  return points.map(([x, y], i) => `${i ? "L" : "M"}${at(x)} ${at(y)}`).join("") + (closed ? "Z" : "");
}

// The colour moved towards black if it is light, towards white if it is dark.
export function contrast(color, share = 0.7) {
  const channels = [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));
  const goal = 0.299 * channels[0] + 0.587 * channels[1] + 0.114 * channels[2] > 110 ? 0 : 255;
  return `#${channels.map((value) => Math.round(value + share * (goal - value)).toString(16).padStart(2, "0")).join("")}`;
}

function disc([x, y], size, color) {
  return svg("circle", { cx: at(x), cy: at(y), r: at(size), fill: color });
}

function square([x, y], half, color) {
  return svg("rect", { x: at(x - half), y: at(y - half), width: at(2 * half), height: at(2 * half), fill: color });
}

// Another mark for each player: nobody needs colours to tell them apart. A ring, a square, nothing; then a disc, a full
// square, a dot; then a ring and a square with a dot inside.
function engraving(middle, size, player, color, share) {
  if (player === null || player === 2) return [];
  const [row, kind] = [Math.floor(player / 3), player % 3];
  const mark = kind === 1 ? square : disc;
  const half = size * share * [1, 0.8, 0.4][kind];
  const dark = contrast(color, 0.45);
  const layers = [mark(middle, half + 0.06 * size, dark), mark(middle, half - 0.06 * size, color), disc(middle, 0.16 * size, dark)];
  return layers.slice(0, [2, 1, 3][row]);
}

// The colour of a player.
export function colorOf({ colors }, player) {
  return [colors.first, colors.second, ...colors.others][player];
}

// The shape of a piece.
export function shapeOf({ shapes }, { shape, player }) {
  return shape || (player === null ? "stone" : shapes[player % shapes.length]);
}

// One piece on a cell with that outline.
export function drawPiece(piece, outline, board) {
  const middle = center(outline);
  const size = radius(outline);
  const { colors } = board;
  const color = piece.player === null ? colors.neutral : colorOf(board, piece.player);
  const shape = shapeOf(board, piece);
  const glyph = board.glyphs[shape];
  const [x, y] = middle;
  const group = svg("g", { class: "piece" });
  if (shape === "line") group.append(svg("path", { d: path(outline), fill: color }));
  else if (shape === "fill") {
    group.append(svg("path", { d: path(shrunk(outline, 0.96)), fill: color }));
    group.append(...engraving(middle, size, piece.player, color, 0.35));
  } else if (shape === "cross") {
    const r = 0.6 * size;
    const d = `M${at(x - r)} ${at(y - r)}L${at(x + r)} ${at(y + r)}M${at(x - r)} ${at(y + r)}L${at(x + r)} ${at(y - r)}`;
    group.append(svg("path", { d, fill: "none", stroke: color, "stroke-width": at(0.28 * size), "stroke-linecap": "round" }));
  } else if (shape === "triangle") {
    const d = path([[0, -0.66], [0.62, 0.5], [-0.62, 0.5]].map(([right, down]) => [x + right * size, y + down * size]));
    group.append(svg("path", { d, fill: "none", stroke: color, "stroke-width": at(0.24 * size) }));
  } else if (shape === "ring") {
    group.append(svg("circle", { cx: at(x), cy: at(y), r: at(0.6 * size), fill: "none", stroke: color, "stroke-width": at(0.28 * size) }));
  } else if (shape === "dot") group.append(square(middle, 0.36 * size, contrast(color, 0.35)), square(middle, 0.28 * size, color));
  else if (glyph) {
    const transform = `translate(${at(x)} ${at(y)})scale(${(size * SCALE) / 100})`;
    group.append(svg("path", { d: glyph, transform, fill: color, stroke: contrast(color), "stroke-width": 6, "stroke-linejoin": "round", "stroke-linecap": "round" }));
  } else {
    group.append(disc(middle, HOLE * size, contrast(color, 0.35)), disc(middle, (HOLE - 0.07) * size, color));
    group.append(...engraving(middle, size, piece.player, color, 0.45));
  }
  if (piece.text) group.append(words(middle, piece.text, "number"));
  return group;
}

// The board as it is seen from its other side; what is written beside the cells stays on its side.
export function turned(board) {
  const points = board.cells.flatMap((cell) => cell.outline);
  const [xs, ys] = [0, 1].map((i) => points.map((point) => point[i]));
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const turn = ([x, y]) => [left + right - x, top + bottom - y];
  const label = ({ at: [x, y], text }) => ({ text, at: [x < left || x > right ? x : left + right - x, y < top || y > bottom ? y : top + bottom - y] });
  return {
    ...board, labels: board.labels.map(label), cells: board.cells.map((cell) => ({ ...cell, outline: cell.outline.map(turn) })),
    strokes: board.strokes.map((stroke) => ({ ...stroke, points: stroke.points.map(turn) })),
  };
}

// A small picture of a player's piece, for texts beside the board.
export function swatch(board, player, named = "", side = 20) {
  const half = 0.5;
  const outline = [[-half, -half], [half, -half], [half, half], [-half, half]];
  const own = shapeOf(board, { player, shape: named });
  const shape = own === "fill" ? "stone" : own;
  const box = -half * SCALE;
  return svg(
    "svg",
    { class: "swatch", viewBox: `${box} ${box} ${SCALE} ${SCALE}`, width: side, height: side, "aria-hidden": "true" },
    drawPiece({ player, shape, text: "" }, outline, board),
  );
}

// A hole of the board without a piece.
export function drawHole(outline, color) {
  return disc(center(outline), HOLE * radius(outline), color);
}

// The inner part of a cell, round where its outline is not drawn.
export function drawArea(outline, look, share, props) {
  if ((look === "hole" || look === "open") && radius(outline) > 0.4) {
    const [x, y] = center(outline);
    return svg("circle", { cx: at(x), cy: at(y), r: at(share * HOLE * radius(outline)), ...props });
  }
  return svg("path", { d: path(shrunk(outline, share)), ...props });
}

// An arrow between two cells; its width in cells.
export function drawArrow(from, to, width, props) {
  const [x, y] = center(from);
  const [toX, toY] = center(to);
  const length = Math.hypot(toX - x, toY - y) || 1;
  const ahead = [(toX - x) / length, (toY - y) / length];
  const tip = [toX + 0.1 * ahead[0], toY + 0.1 * ahead[1]];
  const start = [x + 0.3 * ahead[0], y + 0.3 * ahead[1]];
  const head = 0.12 + width;
  const place = (back, side, origin) => [
    origin[0] - back * ahead[0] - side * ahead[1],
    origin[1] - back * ahead[1] + side * ahead[0],
  ];
  const half = width / 2;
  const outline = [
    place(0, half, start), place(1.5 * head, half, tip), place(1.5 * head, head, tip), tip,
    place(1.5 * head, -head, tip), place(1.5 * head, -half, tip), place(0, -half, start),
  ];
  return svg("path", { d: path(outline), ...props });
}

export function words([x, y], text, kind, props = {}) {
  return svg("text", { x: at(x), y: at(y) + 4.5, "text-anchor": "middle", class: kind, ...props }, text);
}
