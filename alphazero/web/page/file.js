// Saves and loads games, and links to positions.

import { announce, button, el, focusView, refill } from "./dom.js";

const MOST_BYTES = 32 << 20;
const MOST_GAMES = 2000;
const OTHERS = [".pgn", ".sgf", ".ggf"]; // files of other programs

// The text of a file in UTF-8, in the encoding that a file of SGF names, or in Latin-1.
function decoded(bytes) {
  const named = new TextDecoder("latin1").decode(bytes).match(/CA\[\s*([\w-]{1,24})\s*\]/)?.[1];
  for (const label of ["utf-8", named].filter(Boolean)) {
    try {
      return new TextDecoder(label, { fatal: true }).decode(bytes);
    } catch {
      // another encoding, or one that browsers do not know
    }
  }
  return new TextDecoder("latin1").decode(bytes);
}

export function save(name, text) {
  const link = el("a", { href: URL.createObjectURL(new Blob([`${text}\n`], { type: "text/plain" })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Asks for a file of games. With several games in it, `node` shows a list to choose from; take(line) gets the text.
// convert(text, suffix) gives the lines of a file of another program.
export function load(node, convert, take, fail) {
  const input = el("input", { type: "file", accept: [".jsonl", ".json", ".txt", ...OTHERS].join(), class: "hidden", "aria-label": "File of games" });
  input.addEventListener("change", async () => {
    const [file] = input.files;
    input.remove();
    if (!file) return;
    if (file.size > MOST_BYTES) {
      fail(`${file.name} is larger than 32 MB: choose a smaller file of games`);
      return;
    }
    let lines;
    try {
      const text = decoded(await file.arrayBuffer());
      const suffix = OTHERS.find((one) => file.name.toLowerCase().endsWith(one));
      lines = suffix ? await convert(text, suffix) : text.split(/\r?\n/).filter((line) => line.trim());
    } catch (error) {
      fail(`${file.name} cannot be read: ${error.message}`);
      return;
    }
    if (lines.length === 1) take(lines[0]);
    else if (!lines.length) fail(`${file.name} holds no game`);
    else offer(node, lines, take);
  });
  input.addEventListener("cancel", () => input.remove());
  node.append(input);
  input.click();
}

function offer(node, lines, take) {
  const select = el("select", { "aria-label": "Game in the file" }, lines.slice(0, MOST_GAMES).map((line, i) => el("option", { value: i }, titleOf(line, i))));
  const rest = lines.length - MOST_GAMES;
  const row = el("p", { class: "row" }, select, rest > 0 && `and ${rest.toLocaleString("en")} more, which are not listed`, button("Open", () => {
    focusView();
    row.remove();
    take(lines[Number(select.value)]);
  }));
  node.append(row);
  select.focus();
}

function titleOf(line, i) {
  try {
    const { contestants, result } = JSON.parse(line);
    return `${i}: ${contestants.join(" - ")}, ${result}`;
  } catch {
    return `${i}: not a game`;
  }
}

// A text that people can copy; the clipboard is asked first.
export async function copy(text, node) {
  try {
    await navigator.clipboard.writeText(text);
    announce(node, "The link is copied.");
  } catch {
    const field = el("input", { value: text, readonly: true, "aria-label": "Link to this position" });
    refill(node, field);
    field.select();
  }
}
