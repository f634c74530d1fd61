// Asks the program in the worker; what was asked when the page was made is answered without it.

export class Solver {
  constructor(config) {
    this.config = config;
    this.waiting = new Map();
    this.count = 0;
    this.listeners = new Set();
    this.state = { done: 0, what: "waiting", ready: false };
    this.known = new Map(config.known.map(([kind, said, path]) => [key(kind, said), path]));
    this.words = json(config.words);
  }

  start() {
    if (this.worker) return;
    this.worker = new Worker(new URL(this.config.worker, document.baseURI), { type: "module" });
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.onerror = (event) => this.tell({ failed: event.message || "the worker did not start" });
    this.worker.postMessage({ config: this.config, base: document.baseURI });
  }

  hear(data) {
    if (data.id === undefined) {
      this.tell(data);
      return;
    }
    const { resolve, reject } = this.waiting.get(data.id);
    this.waiting.delete(data.id);
    if (data.failed) reject(new Error(data.failed));
    else resolve(JSON.parse(data.document));
  }

  tell(state) {
    this.state = { ...this.state, ...state };
    for (const listener of this.listeners) listener(this.state);
  }

  /** The document that answers a question. */
  async ask(kind, said) {
    const known = this.known.get(key(kind, said));
    if (known) return json(known);
    if (this.state.failed) throw new Error(this.state.failed);
    this.start();
    return new Promise((resolve, reject) => {
      const id = this.count++;
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, kind, said });
    });
  }
}

const key = (kind, said) => JSON.stringify([kind, said]);

async function json(path) {
  const found = await fetch(path);
  if (!found.ok) throw new Error(`${path}: ${found.status}`);
  return found.json();
}
