// A connection to the server by websocket. It opens again by itself after it was lost.
// The interface of every connection to an engine: on("open" | "close" | "message", function), connect(), send(object),
// and mostBytes, the size of the largest message, if it has a limit.

const PAUSES = [200, 400, 800, 1500, 3000];
const MOST_BYTES = 1 << 20; // as in message.py

export class SocketConnection {
  constructor(address = new URL("talk", location.href.split("#")[0].replace(/^http/, "ws"))) {
    this.address = address;
    this.mostBytes = MOST_BYTES;
    this.handlers = { open: [], close: [], message: [] };
    this.tries = 0;
  }

  on(name, handler) {
    this.handlers[name].push(handler);
  }

  tell(name, value) {
    for (const handler of this.handlers[name]) handler(value);
  }

  connect() {
    this.socket = new WebSocket(this.address);
    this.socket.onopen = () => {
      this.tell("open");
    };
    this.socket.onmessage = (event) => {
      this.tries = 0; // not sooner: a server that has no room takes a connection and ends it
      this.tell("message", JSON.parse(event.data));
    };
    this.socket.onclose = (event) => {
      this.tell("close", event.reason);
      setTimeout(() => this.connect(), PAUSES[Math.min(this.tries++, PAUSES.length - 1)]);
    };
  }

  send(message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}
