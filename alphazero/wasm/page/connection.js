// A connection to the worker of this file, in the place of the one to a server.
// The page's code is the same; it imports this module by the name of the other.

export class SocketConnection {
  connect(handlers) {
    this.handlers = handlers;
    this.worker = this.start();
    setTimeout(() => handlers.open(), 0);
  }

  start() {
    const source = new Blob([document.getElementById("worker").textContent], { type: "text/javascript" });
    const worker = new Worker(URL.createObjectURL(source));
    worker.onmessage = (event) => this.handlers.message(event.data);
    worker.onerror = (event) => this.handlers.close(`The engine of this file has stopped (${event.message}): open the file again.`);
    worker.postMessage({ file: JSON.parse(document.getElementById("file").textContent) });
    return worker;
  }

  // Exact results have a worker of their own: a solver cannot be interrupted, and searches must not wait for it.
  send(message) {
    if (message.ask === "oracle") (this.solver ??= this.start()).postMessage(message);
    else this.worker?.postMessage(message);
  }
}
