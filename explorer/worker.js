// The program itself, in Pyodide: it is asked as any program asks it that imports it.

const PROGRAM = `
import importlib, json, sys

sys.path.append(place)
from toolmatrix.api.explorer import Explorer
from toolmatrix.api.requests import OpenMatrix
from toolmatrix.factbase.index import Index, in_memory

class Fetched(dict):
    def __missing__(self, name):
        self[name] = bytes(fetched(name).to_py())
        return self[name]

explorer = Explorer(OpenMatrix(index=Index("", in_memory(Fetched()))))

def ask(kind, said):
    return json.dumps(explorer.ask(kind, json.loads(said)))
`;

// Where Python finds them, in its own file system.
const PLACE = "/program";

let asked;
let libraries;

self.onmessage = async ({ data }) => {
  if (data.config) {
    asked = start(data.config, data.base);
    asked.catch((error) => self.postMessage({ failed: String(error) }));
    return;
  }
  try {
    const ask = await asked;
    const said = JSON.stringify(data.said);
    self.postMessage({ id: data.id, document: await answered(ask, data.kind, said) });
  } catch (error) {
    self.postMessage({ id: data.id, failed: String(error) });
  }
};

async function answered(ask, kind, said) {
  try {
    return ask(kind, said);
  } catch (error) {
    // What only some questions need is fetched when one of them is asked.
    if (!libraries || !String(error).includes("ModuleNotFoundError")) throw error;
    await libraries();
    libraries = undefined;
    return ask(kind, said);
  }
}

async function start(config, base) {
  const at = (path) => new URL(path, base).href;
  const said = (done, what) => self.postMessage({ done, what, ready: done === 1 });
  said(0.05, "loading Python");
  const code = packed(at(config.code));
  const { folder, first } = config.matrix;
  const early = new Map(first.map((name) => [name, bytes(at(folder + name))]));
  const { loadPyodide } = await import(at(`${config.runtime}pyodide.mjs`));
  const python = await loadPyodide({
    indexURL: at(config.runtime),
    lockFileContents: config.lock,
  });
  said(0.7, "loading the program and facts");
  install(python, await code);
  const held = new Map();
  for (const [name, data] of early) held.set(name, new Uint8Array(await data));
  said(0.9, "starting the program");
  python.globals.set("place", PLACE);
  python.globals.set("fetched", (name) => held.get(name) ?? file(at(folder + name)));
  python.runPython(PROGRAM);
  libraries = async () => {
    install(python, await packed(at(config.libraries)));
    python.runPython("importlib.invalidate_caches()");
  };
  said(1, "ready");
  return python.globals.get("ask");
}

async function bytes(address) {
  const found = await fetch(address);
  if (!found.ok) throw new Error(`${address}: ${found.status}`);
  return found.arrayBuffer();
}

/** Files by their names: a line of JSON with the name and the length of each, then they themselves, packed as one. */
async function packed(address) {
  const stream = new Blob([await bytes(address)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = new Uint8Array(await new Response(stream).arrayBuffer());
  const line = data.indexOf(10);
  let start = line + 1;
  return JSON.parse(new TextDecoder().decode(data.subarray(0, line))).map(([name, length]) => [
    name,
    data.subarray(start, (start += length)),
  ]);
}

function install(python, files) {
  for (const [name, data] of files) {
    const path = `${PLACE}/${name}`;
    python.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    python.FS.writeFile(path, data);
  }
}

/** A file of the matrix while Python waits for it, which a worker may do. */
function file(address) {
  const request = new XMLHttpRequest();
  request.open("GET", address, false);
  request.responseType = "arraybuffer";
  request.send();
  if (request.status !== 200) throw new Error(`${address}: ${request.status}`);
  return new Uint8Array(request.response);
}
