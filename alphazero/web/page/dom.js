// Makes elements. Text only ever becomes text: nothing here parses markup.

const SVG = "http://www.w3.org/2000/svg";

function isNothing(value) {
  return value === undefined || value === null || value === false;
}

// The children as nodes: nodes, texts, lists of them, or nothing.
function nodesOf(children) {
  return children.flat(Infinity).filter((child) => !isNothing(child))
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (isNothing(value)) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "selected") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  put(node, ...children);
  return node;
}

// An HTML element: el("button", {class: "main", onclick: play}, "Play").
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

// An SVG element.
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

export function put(node, ...children) {
  node.append(...nodesOf(children));
  return node;
}

// Replaces all children; nothing happens to children that stay where they are, nor to one that stays and has the focus.
export function refill(node, ...children) {
  const wanted = nodesOf(children);
  if (wanted.length === node.childNodes.length && wanted.every((child, i) => child === node.childNodes[i])) return node;
  const held = wanted.find((child) => child.parentNode === node && child.contains(document.activeElement));
  if (held) {
    for (const child of [...node.childNodes]) if (child !== held) child.remove();
    held.before(...wanted.slice(0, wanted.indexOf(held)));
    held.after(...wanted.slice(wanted.indexOf(held) + 1));
  } else node.replaceChildren(...wanted);
  return node;
}

// The same for parts that are drawn often: the focus stays on its element if that is kept, or on one with its data-key;
// what is kept stays scrolled as it was.
export function redraw(node, ...children) {
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  const key = focused?.dataset.key;
  const scrolled = [...node.querySelectorAll("*")].filter((one) => one.scrollTop).map((one) => [one, one.scrollTop]);
  refill(node, ...children);
  for (const [one, top] of scrolled) one.scrollTop = top;
  if (focused && node.contains(focused)) focused.focus({ preventScroll: true });
  else if (key !== undefined) node.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
  return node;
}

// Moves the focus elsewhere if what had it was disabled or hidden since: else the next key would go to nobody.
// Some browsers take the focus from it at once, others when they draw.
export function rescueFocus(focused, node, elsewhere) {
  if (node.contains(focused) && (focused.disabled || focused.closest("[hidden]"))) elsewhere.focus();
}

// Whether a key is the browser's or the system's, as Alt and an arrow.
export function isShortcut({ ctrlKey, metaKey, altKey }) {
  return ctrlKey || metaKey || altKey;
}

// Moves the focus to the view, before what has it goes.
export function focusView() {
  document.getElementById("view").focus({ preventScroll: true });
}

// A button; `text` is its text or its children.
export function button(text, onclick, props = {}) {
  return el("button", { type: "button", onclick, ...props }, text);
}

// The head of a table.
export function headOf(words) {
  return el("tr", {}, words.map((word) => el("th", { scope: "col" }, word)));
}

// A bar behind the visits of an action, as wide as their share.
export function meter(share) {
  return el("span", { class: "meter", style: { width: percent(share, 1) } });
}

// Tells screen readers something that others see.
export function say(text) {
  document.getElementById("said").textContent = text;
}

// Shows a text, and tells it to screen readers.
export function announce(node, text) {
  refill(node, text);
  say(text);
}

export function percent(share, digits = 0) {
  return `${(100 * share).toFixed(digits)}%`;
}

export function short(number) {
  if (number >= 1e6) return `${(number / 1e6).toFixed(number >= 1e7 ? 0 : 1)}M`;
  if (number >= 1e4) return `${(number / 1e3).toFixed(number >= 1e5 ? 0 : 1)}k`;
  return String(number);
}

export function duration(seconds) {
  const minutes = Math.round(seconds / 60);
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (minutes < 90) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// A number of things: "1 move", "2,000 moves".
export function countOf(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}
