// Compiles what the program imports, as a browser would each time it starts: by Pyodide itself, in node.
//
//     node compile.mjs PYODIDE LIBRARY PROGRAM
//
// The archives LIBRARY and PROGRAM are written anew, with `.pyc` files in the place of modules that are imported.
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, library, program] = process.argv.slice(2).map((path) => resolve(path));

const COMPILER = `
import ast, importlib, importlib.util, io, sys, zipfile
from marshal import dumps

LIBRARY = "/lib/python%d%d.zip" % sys.version_info[:2]
# Never looked up in sources, which a browser does not have: PEP 552.
UNCHECKED = (1).to_bytes(4, "little")

def files(path):
    with zipfile.ZipFile(path) as held:
        return {name: held.read(name) for name in held.namelist() if not name.endswith("/")}

def imported(source):
    # Within functions as well, where what few questions need is imported.
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module

def load(program):
    for name in sorted({name for path, data in program.items() if path.endswith(".py") for name in imported(data)}):
        try:
            importlib.import_module(name)
        except ImportError:
            pass

def compiled(held, kept):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in sorted(held.items()):
            if name.endswith(".py") and name in kept:
                code = compile(data, name, "exec", dont_inherit=True, optimize=2)
                data = importlib.util.MAGIC_NUMBER + UNCHECKED + importlib.util.source_hash(data) + dumps(code)
                name += "c"
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, compresslevel=9)
    return made.getvalue()

def run(path):
    library, program = files(LIBRARY), files(path)
    sys.path.append(path)
    load(program)
    origins = {str(getattr(module, "__file__", "")) for module in [*sys.modules.values()]}
    inside = {origin.removeprefix(LIBRARY + "/") for origin in origins if origin.startswith(LIBRARY)}
    return [compiled(library, inside), compiled(program, program)]
`;

const { loadPyodide } = await import(pathToFileURL(join(folder, "pyodide.mjs")));
const python = await loadPyodide({
  indexURL: folder,
  stdLibURL: library,
  // No package is asked for.
  lockFileContents: { ...JSON.parse(readFileSync(join(folder, "pyodide-lock.json"))), packages: {} },
  // Sets are written in the order of their hashes: equal sources make equal bytes.
  env: { PYTHONHASHSEED: "0" },
});
python.FS.writeFile("/program.zip", readFileSync(program));
python.runPython(COMPILER);
const made = python.globals.get("run")("/program.zip");
writeFileSync(library, made.get(0).toJs());
writeFileSync(program, made.get(1).toJs());
