// Times a module in node: `node browser.mjs folder`, which holds engine.wasm, request.json and perhaps weights.bin.
// Writes seconds of processor time as JSON.
import { existsSync, readFileSync } from "node:fs";

const folder = process.argv[2];
const { places, games, seed, simulations, repeats } = JSON.parse(readFileSync(`${folder}/request.json`, "utf8"));
const engine = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(`${folder}/engine.wasm`))).exports;
if (existsSync(`${folder}/weights.bin`)) {
  new Uint8Array(engine.memory.buffer).set(readFileSync(`${folder}/weights.bin`), places.weights[1]);
}

function timed(work) {
  const before = process.cpuUsage();
  const result = work();
  const { user, system } = process.cpuUsage(before);
  return [(user + system) / 1e6, result];
}

function search() {
  engine.start();
  engine.begin(simulations);
  engine.search(simulations);
}

const plies = [];
const searches = [];
engine.random_games(1000, seed);
if (simulations) search();
for (let i = 0; i < repeats; i++) {
  const [seconds, count] = timed(() => engine.random_games(games, seed + i));
  plies.push(count / seconds);
  if (simulations) searches.push(timed(search)[0]);
}
console.log(JSON.stringify({ plies, searches }));
