// The question: each field is an option of the command line, and the address holds them.
import { useState } from "preact/hooks";
import { Choice, Suggesting, html } from "./parts.js";

const TEXTS = ["device", "distro"];
const CHOICES = [
  ["from", "How it gets there"],
  ["accelerator", "Accelerator"],
];
const MORE = [
  ["arch", "Code for (codegen arch)", "such as sm_86, gfx90a; with commas between"],
  ["cpu", "Code for this CPU", "such as zen3, neoverse_v1"],
  ["min_evidence", "At least known as well as", ""],
  ["prefer", "Prefer", ""],
  ["at", "As known on the day", "such as 2025-01-31"],
];
const OPTION = { min_evidence: "min-evidence" };

/** The fields of the form for what an address says; `held` are components with a field of their own. */
function fields(view, said, held) {
  const found = { command: view === "why-not" ? view : "resolve", q: said.getAll("q").join(" ") };
  const also = [];
  for (const text of said.getAll("with")) {
    const name = held.find((one) => text.startsWith(one) && /^[=<>!~]/.test(text.slice(one.length)));
    if (name && !found[name]) found[name] = text.slice(name.length).replace(/^==/, "");
    else also.push(text);
  }
  found.also = also.join(" ");
  found.target = said.getAll("target").flatMap((text) => text.split(","));
  for (const name of [...TEXTS, "from", "accelerator", ...MORE.map(([name]) => name)])
    found[name] = said.getAll(OPTION[name] ?? name).join(",");
  return found;
}

function address(found, held) {
  const said = new URLSearchParams();
  const add = (name, value) => value && said.append(name, value.trim());
  for (const word of found.q.split(/\s+/).filter(Boolean)) said.append("q", word);
  for (const name of held)
    if (found[name]) add("with", name + (/^[=<>!~]/.test(found[name]) ? "" : "==") + found[name]);
  for (const word of found.also.split(/\s+/).filter(Boolean)) said.append("with", word);
  add("target", found.target.join(","));
  for (const name of [...CHOICES.map(([one]) => one), ...TEXTS, ...MORE.map(([one]) => one)])
    add(OPTION[name] ?? name, found[name]);
  return said;
}

export function Ask({ view, said, config, suggestions, onAsk }) {
  const [found, setFound] = useState(() => fields(view, said, config.held));
  const set = (name) => (value) => setFound((before) => ({ ...before, [name]: value }));
  const nothing = () => [];
  const titled = (name) => suggestions?.components.get(name)?.title ?? name;
  const submit = (event) => {
    event.preventDefault();
    onAsk(found.command, address(found, config.held));
  };
  const target = (word) => (event) =>
    set("target")(event.currentTarget.checked ? [...found.target, word] : found.target.filter((one) => one !== word));
  return html`<form class="ask" onSubmit=${submit} aria-label="question">
    <${Suggesting} label="What" several value=${found.q} onValue=${set("q")} suggest=${suggestions?.request ?? nothing}
      help="components, each with a release if it has to be one: torch==2.6 numpy>=2" />
    <div class="fields">
      <${Suggesting} label="Device" value=${found.device} onValue=${set("device")} suggest=${suggestions?.device ?? nothing} several apart=${/,/} help="a product or a capability" />
      ${config.held.map((name) => html`<${Suggesting} key=${name} label=${titled(name)} value=${found[name] ?? ""} onValue=${set(name)} suggest=${suggestions?.releases(name) ?? nothing} />`)}
      <${Suggesting} label="Distribution" value=${found.distro} onValue=${set("distro")} suggest=${suggestions?.releases("distro") ?? nothing} />
    </div>
    <div class="choices">
      <fieldset class="choice"><legend>Target</legend>
        ${(suggestions?.option("target") ?? []).map((word) => html`<label><input type="checkbox" checked=${found.target.includes(word)} onChange=${target(word)} /> ${word}</label>`)}
      </fieldset>
      ${CHOICES.map(([name, label]) => html`<${Choice} key=${name} label=${label} name=${name} value=${found[name]} options=${suggestions?.option(name) ?? []} onValue=${set(name)} />`)}
    </div>
    <details class="more"><summary>More</summary>
      <div class="fields">
        <${Suggesting} label="What else you hold" several value=${found.also} onValue=${set("also")} suggest=${suggestions?.request ?? nothing} />
        ${MORE.map(([name, label, help]) => html`<${Suggesting} key=${name} label=${label} help=${help} value=${found[name]} onValue=${set(name)} suggest=${chosen(suggestions, name)} />`)}
      </div>
    </details>
    <div class="actions">
      <button type="submit" class="primary">Answer</button>
      <label><input type="checkbox" checked=${found.command === "why-not"} onChange=${(event) => set("command")(event.currentTarget.checked ? "why-not" : "resolve")} /> only say what forbids it</label>
    </div>
  </form>`;
}

function chosen(suggestions, name) {
  if (name === "arch") return suggestions?.releases("arch") ?? (() => []);
  const known = suggestions?.option(name) ?? [];
  return (typed) => known.filter((word) => word.startsWith(typed)).map((word) => ({ word }));
}
