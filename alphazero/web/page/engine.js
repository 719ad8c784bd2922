// Questions to an engine, wherever it is: behind a websocket, or in a worker of this page.
// A question holds all that its answer depends on, so after a lost connection it is simply asked again.

import { whenReleased } from "./press.js";

export class Refused extends Error {}

function bytesOf(question) {
  return new TextEncoder().encode(JSON.stringify(question)).length;
}

export class Engine {
  // Calls watch(connected, reason) whenever the connection is lost or back.
  constructor(connection, watch) {
    this.connection = connection;
    this.open = new Map();
    this.next = 1;
    connection.connect({
      message: (message) => whenReleased(() => this.take(message)),
      open: () => {
        for (const { question } of this.open.values()) connection.send(question);
        watch(true, "");
      },
      close: (reason) => watch(false, reason),
    });
  }

  take({ id, ...answer }) {
    const asked = this.open.get(id);
    if (!asked) return;
    if (!answer.more) this.open.delete(id);
    asked.take(answer);
  }

  // Asks a question with several answers: take(answer) gets each. Returns a function that ends it.
  // One that is larger than the connection carries is refused here: it would close the connection whenever it is asked.
  follow(ask, fields, take) {
    const id = this.next++;
    const question = { id, ask, ...fields };
    const { mostBytes } = this.connection;
    if (mostBytes && bytesOf(question) > mostBytes) {
      queueMicrotask(() => take({ error: `the text is too long for a game: the page can ask about ${mostBytes >> 20} MB at once` }));
      return () => {};
    }
    this.open.set(id, { question, take });
    this.connection.send(question);
    return () => {
      if (this.open.delete(id)) this.connection.send({ cancel: id });
    };
  }

  // Asks a question with one answer; throws Refused with the engine's sentence.
  ask(ask, fields = {}) {
    return new Promise((resolve, reject) => {
      this.follow(ask, fields, (answer) => {
        if (answer.error) reject(new Refused(answer.error));
        else resolve(answer);
      });
    });
  }
}
