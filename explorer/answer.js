// An answer as the program lays it out: trees or reasons, ways out, sources.
import { useState } from "preact/hooks";
import { said, write } from "./address.js";
import { Cited, Code, Evidence, Facts, Mark, Place, Refused, html, useAnswer } from "./parts.js";

export function Answer({ solver, command, words }) {
  const answer = useAnswer(solver, "answer", { command, words });
  if (!answer) return html`<p class="wait" role="status">solving</p>`;
  if (answer.error) return html`<${Refused} error=${answer.error} />`;
  return html`<article class="answer ${answer.verdict}" aria-label="answer">
    <p class="verdict"><${Mark} word=${answer.verdict} />${answer.headline}</p>
    <div class="remarks">${answer.remarks.map((text) => html`<p>${text}</p>`)}</div>
    <${Code} text=${answer.command} what="command" />
    ${answer.trees.length > 0 && answer.document.allowed === undefined && html`<${Trees} solver=${solver} answer=${answer} />`}
    ${answer.reasons.map((reason, place) => html`<${Reason} key=${place} number=${place + 1} reason=${reason} answer=${answer} solver=${solver} />`)}
    ${answer.repairs.length > 0 && html`<${Repairs} repairs=${answer.repairs} />`}
    ${answer.trees.length > 0 && html`<${Dockerfile} key=${answer.command} solver=${solver} words=${words} />`}
    <${Sources} notes=${answer.notes} />
    <details class="text"><summary>As the command prints it</summary><${Code} text=${answer.text} what="text" /></details>
  </article>`;
}

const Trees = ({ solver, answer }) =>
  answer.trees.map(({ target, root }) => {
    const held = answer.document.targets[target];
    return html`<section class="target" aria-label=${`answer for ${target}`}>
      <h2>${target}</h2>
      <${Install} held=${held} />
      <ul class="tree"><${Node} node=${root} answer=${answer} held=${held} solver=${solver} /></ul>
      <${Flags} flags=${held.flags} />
    </section>`;
  });

const Node = ({ node, answer, held, solver }) => html`<li>
  <div class="node ${node.name === "disputed" ? "disputed" : ""}">
    ${node.name === "disputed" ? html`<${Mark} word="disputed" />` : html`<span class="name">${node.name}</span>`}
    <${Evidence} word=${node.evidence} />
    <span class="why">${node.why}<${Cited} numbers=${node.notes} notes=${answer.notes} /></span>
    <${Facts} solver=${solver} ids=${factsOf(held, node)} />
  </div>
  ${node.disputes.length + node.below.length > 0 && html`<ul>
    ${[...node.disputes, ...node.below].map((part) => html`<${Node} node=${part} answer=${answer} held=${held} solver=${solver} />`)}
  </ul>`}
</li>`;

function factsOf(held, { component, name }) {
  if (!component) return [];
  const build = Object.values(held.components).find((part) => part.variant && component.endsWith("-variant") && name.startsWith(`${part.variant.line} build`));
  const listed = [...held.archs, ...held.devices].find((part) => name.split(" ").at(-1) === part.name);
  return (held.components[component] ?? build?.variant ?? listed)?.facts;
}

function Install({ held }) {
  if (!held.install) return null;
  const ways = Object.entries(held.install);
  return html`<div class="install"><h3>Install</h3>${ways.map(([tool, lines]) => html`<${Code} key=${tool} text=${lines.join("\n")} what=${`install with ${tool}`} />`)}</div>`;
}

function Flags({ flags }) {
  const kinds = ["cflags", "cxxflags", "nvcc", "hipcc"].filter((name) => flags[name].length);
  const env = Object.entries(flags.env);
  if (!kinds.length && !env.length) return null;
  return html`<div class="flags"><h3>Flags</h3>
    ${kinds.map((name) => html`<p class="kind">${name}</p><${Code} text=${flags[name].join(" ")} what=${name} />`)}
    ${env.length > 0 && html`<p class="kind">environment</p><${Code} text=${env.map(([name, value]) => `${name}=${value}`).join("\n")} what="environment" />`}
  </div>`;
}

const Reason = ({ number, reason, answer, solver }) => html`<section class="reason ${reason.kind}" aria-label=${`reason ${number}`}>
  <p><strong>${number}. ${reason.kind}</strong> <small>${reason.code}</small></p>
  <ul>${reason.lines.map((line) => html`<li>${line.text} <${Evidence} word=${line.evidence} /><${Cited} numbers=${line.notes} notes=${answer.notes} />
    <${Facts} solver=${solver} ids=${line.facts} /></li>`)}</ul>
  <p>${reason.conclusion}</p>
</section>`;

const Repairs = ({ repairs }) => html`<section class="repairs" aria-label="ways out"><h2>To allow it</h2>
  <p>Each of these was solved.</p>
  <ul>${repairs.map((way) => html`<li>
    <a href=${write("resolve", said(way.words))}>${way.text}</a> <small>weakest evidence:</small> <${Evidence} word=${way.evidence} />
    <br /><code>${way.command}</code>
  </li>`)}</ul></section>`;

function Dockerfile({ solver, words }) {
  const [open, setOpen] = useState(false);
  return html`<details class="files" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>Dockerfile</summary>${open && html`<${Files} solver=${solver} words=${words} />`}
  </details>`;
}

function Files({ solver, words }) {
  const found = useAnswer(solver, "files", { words });
  if (!found) return html`<p class="wait" role="status">rendering</p>`;
  if (found.error) return html`<${Refused} error=${found.error} />`;
  return html`<div>
    <${Code} text=${found.command} what="command of the Dockerfile" />
    ${found.excluded.map(({ target, reason }) => html`<p class="remark">no image for ${target}: ${reason}</p>`)}
    ${found.unpinned.length > 0 && html`<p class="remark">Not pinned by a digest: ${found.unpinned.join("; ")}</p>`}
    ${Object.entries(found.files).map(([name, text]) => html`<h3>${name}</h3><${Code} text=${text} what=${name} />`)}
  </div>`;
}

const Sources = ({ notes }) =>
  notes.length > 0 && html`<section class="sources" aria-label="sources"><h2>Sources</h2>
    <ol>${notes.map((note) => html`<li>${note.title}, read ${note.read}<br /><small><${Place} source=${note} /></small></li>`)}</ol>
  </section>`;
