// Asks the engine of a published file: `node ask.mjs page.html questions.json answers.json`.
// Writes for each question the list of its answers.
import { readFileSync, writeFileSync } from "node:fs";

const [page, questionsPath, answersPath] = process.argv.slice(2);
const html = readFileSync(page, "utf8");
const part = (id) => new RegExp(`<script [^>]*id="${id}">([^]*?)</script>`).exec(html)[1];
const Engine = new Function(`${part("worker")}; return FileEngine;`)();
const engine = new Engine(JSON.parse(part("file")));
const answers = [];
for (const [id, question] of JSON.parse(readFileSync(questionsPath, "utf8")).entries()) {
  const told = [];
  answers.push(told);
  await engine.answer({ id, ...question }, (answer) => told.push(answer));
}
writeFileSync(answersPath, JSON.stringify(answers));
