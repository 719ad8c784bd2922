// A connection to the server by websocket. It opens again by itself after it was lost.
// The interface of every connection to an engine: connect({open(), close(reason), message(object)}), send(object),
// and mostBytes, the size of the largest message, if it has a limit.

const PAUSES = [200, 400, 800, 1500, 3000];
const MOST_BYTES = 1 << 20; // as in message.py

export class SocketConnection {
  constructor() {
    this.address = new URL("talk", location.href.split("#")[0].replace(/^http/, "ws"));
    this.mostBytes = MOST_BYTES;
    this.tries = 0;
  }

  connect(handlers) {
    this.socket = new WebSocket(this.address);
    this.socket.onopen = () => handlers.open();
    this.socket.onmessage = (event) => {
      this.tries = 0; // not sooner: a server that has no room takes a connection and ends it
      handlers.message(JSON.parse(event.data));
    };
    this.socket.onclose = (event) => {
      handlers.close(event.reason);
      setTimeout(() => this.connect(handlers), PAUSES[Math.min(this.tries++, PAUSES.length - 1)]);
    };
  }

  send(message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}
