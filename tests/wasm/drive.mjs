// Drives an engine in node: `node drive.mjs module.wasm request.json answers.bin`.
// The request has `places`, and one of `games`, `evaluations` (lists of actions), `searches` (actions, simulations, slice)
// and `moves` (actions, simulations, seed).
import { readFileSync, writeFileSync } from "node:fs";

const [module, requestPath, answersPath] = process.argv.slice(2);
const request = JSON.parse(readFileSync(requestPath, "utf8"));
const engine = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(module))).exports;
const answers = [];

function keep(...names) {
  for (const name of names) {
    const [type, address, length] = request.places[name];
    const width = { bool: 1, int8: 1, int32: 4, float32: 4, uint64: 8 }[type];
    answers.push(Buffer.from(engine.memory.buffer.slice(address, address + width * length)));
  }
}

function number(value) {
  answers.push(Buffer.from(Int32Array.of(value).buffer));
}

// Plays an action, or an outcome of the die that is due.
function play(action) {
  if (request.places.chances) {
    engine.describe();
    const [, address] = request.places.chances;
    if (new Float32Array(engine.memory.buffer, address, 1)[0] > 0) return engine.settle(action);
  }
  engine.play(action);
}

for (const actions of request.games ?? []) {
  engine.start();
  for (const action of [...actions, -1]) {
    number(engine.describe());
    engine.observe();
    keep("state", "to_play", "legal_mask", "result", "planes");
    if (action >= 0) play(action);
  }
}

if (request.weights) {
  new Uint8Array(engine.memory.buffer).set(readFileSync(request.weights), request.places.weights[1]);
}

for (const actions of request.evaluations ?? []) {
  engine.start();
  for (const action of actions) play(action);
  engine.describe();
  engine.observe();
  engine.ask();
  keep("value", "policy");
}

for (const { actions, simulations, slice } of request.searches ?? []) {
  engine.start();
  for (const action of actions) play(action);
  engine.begin(simulations);
  while (engine.search(slice) > 0);
  const best = engine.read();
  number(best);
  keep("visits", "policy", "q", "value", "proven");
  const length = engine.line(best);
  number(length);
  const [, address] = request.places.line;
  answers.push(Buffer.from(engine.memory.buffer.slice(address, address + 4 * length)));
}

for (const { actions, simulations, seed } of request.moves ?? []) {
  engine.start();
  for (const action of actions) play(action);
  engine.describe();
  if (simulations) {
    engine.begin_move(simulations, seed, actions.length);
    while (engine.search_move(7) > 0);
    number(engine.choose(seed, actions.length));
    keep("visits", "policy", "q", "value");
  } else number(engine.choose_alone(seed, actions.length));
}

for (const { actions, seed } of request.throws ?? []) {
  engine.start();
  for (const action of actions) play(action);
  engine.throw(seed, actions.length);
  keep("outcomes", "state", "to_play");
}

for (const [simulations, path] of request.looks ?? []) {
  engine.start();
  engine.begin(simulations);
  while (engine.search(7) > 0);
  const [, address, length] = request.places.child;
  let node = 0;
  for (const action of path) {
    engine.look(node);
    node = new Int32Array(engine.memory.buffer, address, length)[action];
  }
  engine.look(node);
  keep("visits", "prior", "q", "value", "proven");
}
writeFileSync(answersPath, Buffer.concat(answers));
