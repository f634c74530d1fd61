// What the matrix holds, laid out: a heat map, releases along time, coverage, and what is new.
import { useEffect, useState } from "preact/hooks";
import { words, write } from "./address.js";
import { Heat } from "./heat.js";
import { Evidence, Place, Refused, Suggesting, html, useAnswer } from "./parts.js";
import { Lanes } from "./lanes.js";

export const LOOKS = { grid: "Heat map", timeline: "Timeline", coverage: "Coverage", changes: "What is new" };

export const Look = (props) => html`<${VIEWS[props.view]} ...${props} />`;

/** A form of text fields whose values are in the address. */
function Fields({ view, fields, values, suggest, button }) {
  const [found, setFound] = useState(values);
  const submit = (event) => {
    event.preventDefault();
    const kept = Object.entries(found).filter(([, value]) => value);
    location.hash = write(view, new URLSearchParams(kept));
  };
  return html`<form class="ask" onSubmit=${submit} aria-label=${LOOKS[view]}>
    <div class="fields">${fields.map(([name, label, help, several]) => html`<${Suggesting} key=${name} label=${label} help=${help} several=${several} apart=${/[,\s]+/} value=${found[name] ?? ""}
      suggest=${suggest(name)} onValue=${(value) => setFound((before) => ({ ...before, [name]: value }))} />`)}</div>
    <div class="actions"><button type="submit" class="primary">${button}</button></div>
  </form>`;
}

const Shown = ({ document, children }) => {
  if (!document) return html`<p class="wait" role="status">asking</p>`;
  return document.error ? html`<${Refused} error=${document.error} />` : children(document);
};

function Grid({ said, solver, config, suggestions }) {
  const implied = !said.get("rows");
  const rest = new URLSearchParams([...said].filter(([name]) => !["rows", "cols", "where"].includes(name)));
  const where = said.getAll("where");
  const asked = implied
    ? config.grid
    : { rows: said.get("rows"), cols: said.get("cols") ?? "", words: words(rest), ...(where.length ? { where } : {}) };
  const document = useAnswer(solver, "grid", asked);
  const none = () => () => [];
  const values = Object.fromEntries(said);
  const suggest = suggestions
    ? (name) => ({ rows: suggestions.component, cols: suggestions.component, where: suggestions.request })[name] ?? named(suggestions, name)
    : none;
  return html`<div>
    <${Fields} key=${JSON.stringify(asked)} view="grid" button="Show" suggest=${suggest}
      values=${implied ? { rows: asked.rows, cols: asked.cols, from: "wheel" } : values}
      fields=${[["rows", "Rows", "a component"], ["cols", "Columns", "a component"], ["where", "Only these", "such as cuda>=12"], ["from", "How it gets there"], ["target", "Target"]]} />
    <p class="others">Others: ${config.grids.map((grid) => html`<a href=${write("grid", address(grid))}>${grid.rows} × ${grid.cols}</a> `)}</p>
    <${Shown} document=${document}>${(found) => html`<${Heat} grid=${found} solver=${solver} />`}</${Shown}>
  </div>`;
}

const named = (suggestions, name) => (typed) =>
  (suggestions.option(name) ?? []).filter((word) => word.startsWith(typed)).map((word) => ({ word }));

function address(grid) {
  const found = new URLSearchParams({ rows: grid.rows, cols: grid.cols });
  for (const word of grid.words) found.append(...word.slice(2).split("="));
  return found;
}

function Timeline({ said, solver, config, suggestions }) {
  const beside = (said.get("beside") ?? config.timeline.beside.join(",")).split(/[,\s]+/).filter(Boolean);
  const component = said.get("of") ?? config.timeline.component;
  const document = useAnswer(solver, "timeline", { component, beside });
  const suggest = suggestions ? () => suggestions.component : () => () => [];
  return html`<div>
    <${Fields} key=${component + beside} view="timeline" button="Show" suggest=${suggest} values=${{ of: component, beside: beside.join(",") }}
      fields=${[["of", "Releases of", "a component"], ["beside", "Against", "components, with commas between", true]]} />
    <p class="others">Others: ${config.timelines.map((one) => html`<a href=${write("timeline", new URLSearchParams({ of: one.component, beside: one.beside.join(",") }))}>${one.component}</a> `)}</p>
    <${Shown} document=${document}>${(found) => html`<${Lanes} timeline=${found} solver=${solver} />`}</${Shown}>
  </div>`;
}

function Coverage({ solver }) {
  const document = useAnswer(solver, "coverage", {});
  return html`<${Shown} document=${document}>${({ summary, titles, matrix }) => {
    const counts = Object.entries(summary.components).sort(([, one], [, other]) => other - one);
    const most = counts[0]?.[1] ?? 1;
    const sources = Object.values(summary.sources).sort((one, other) => other.facts - one.facts);
    return html`<div>
      <p>Matrix of ${matrix.date}: ${summary.count} facts and ${summary.data} rows of further data, from ${sources.length} sources.</p>
      <h2>By evidence</h2>
      <table class="table"><thead><tr><th scope="col">evidence</th><th scope="col">facts</th></tr></thead>
        <tbody>${Object.entries(summary.evidence).map(([word, count]) => html`<tr><th scope="row"><${Evidence} word=${word} /></th><td class="number">${count}</td></tr>`)}</tbody></table>
      <h2>By component</h2>
      <table class="table"><thead><tr><th scope="col">component</th><th scope="col">title</th><th scope="col">facts</th><th scope="col">share</th></tr></thead>
        <tbody>${counts.map(([name, count]) => html`<tr><th scope="row"><code>${name}</code></th><td>${titles[name] ?? ""}</td><td class="number">${count}</td>
          <td><meter max=${most} value=${count} aria-label=${`facts of ${name}`}>${count}</meter></td></tr>`)}</tbody></table>
      <details><summary>By source</summary><table class="table"><thead><tr><th scope="col">source</th><th scope="col">at</th><th scope="col">read</th><th scope="col">facts</th></tr></thead>
        <tbody>${sources.map((source) => html`<tr><td>${source.title}</td><td><${Place} source=${source} /></td><td>${source.read}</td><td class="number">${source.facts}</td></tr>`)}</tbody></table></details>
    </div>`;
  }}</${Shown}>`;
}

const SIGNS = { added: "+", removed: "−", changed: "~" };

/** What says something else than in an earlier matrix, which was compared when the page was made. */
function Moved({ solver }) {
  const document = useAnswer(solver, "matrix-changes", {});
  return html`<${Shown} document=${document}>${({ before, after, reread, components }) => html`<section aria-label="changed facts">
    <h2>Facts that changed since the matrix of ${before.date}</h2>
    <p>From ${before.facts} facts to ${after.facts}. ${reread} say the same and were read again at another place.</p>
    ${components.map((part) => html`<${MovedPart} key=${part.component} part=${part} />`)}
    ${!components.length && html`<p>Nothing that is said is another than before.</p>`}
  </section>`}</${Shown}>`;
}

function MovedPart({ part }) {
  // Between matrices of years apart there are thousands: what is closed is not laid out.
  const [open, setOpen] = useState(false);
  const counts = Object.keys(SIGNS).filter((how) => part[how]).map((how) => `${part[how]} ${how}`);
  return html`<details onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${part.title || "no component"} <code>${part.component}</code>: ${counts.join(", ")}</summary>
    ${open && html`<ul class="moved">${part.listed.map((fact) => html`<li><strong><span aria-hidden="true">${SIGNS[fact.how]}</span> ${fact.how}</strong> ${fact.text} <${Evidence} word=${fact.evidence} /> <small><code>${fact.id}</code></small>
      ${fact.was && html`<br /><small>before: ${fact.was.text}, ${fact.was.evidence}</small>`}</li>`)}</ul>`}
    ${open && part.facts > part.listed.length && html`<p class="remark">${part.facts - part.listed.length} more are counted and not listed.</p>`}
  </details>`;
}

// Days that are looked back where nobody says from when.
const BACK = 90;

function Changes({ said, solver, config }) {
  const implied = new Date(Date.parse(config.about.date) - BACK * 86400000).toISOString().slice(0, 10);
  const since = said.get("since") || implied;
  const document = useAnswer(solver, "changes", { since });
  const [day, setDay] = useState(since);
  useEffect(() => setDay(since), [since]);
  const submit = (event) => {
    event.preventDefault();
    location.hash = write("changes", new URLSearchParams({ since: day }));
  };
  return html`<div>
    <form class="ask" onSubmit=${submit} aria-label="what is new"><div class="fields"><div class="field"><label for="since">Since</label>
      <input type="date" id="since" value=${day} onInput=${(event) => setDay(event.currentTarget.value)} /></div></div>
      <div class="actions"><button class="primary" type="submit">Show</button></div></form>
    <${Shown} document=${document}>${(found) => html`<div>
      <p>Released after ${found.since}, in the matrix of ${found.matrix.date}: ${found.releases.reduce((sum, part) => sum + part.releases.length, 0)} releases of ${found.releases.length} components; ${found.sources.length} sources were read since.</p>
      <table class="table"><thead><tr><th scope="col">component</th><th scope="col">releases</th></tr></thead>
        <tbody>${found.releases.map((part) => html`<tr><th scope="row">${part.title} <code>${part.component}</code></th>
          <td>${part.releases.map((one) => html`<span title=${one.date}><a href=${write("resolve", new URLSearchParams({ q: `${part.component}==${one.release}` }))}>${one.release}</a> <small>${one.date}</small></span>${" "}`)}</td></tr>`)}</tbody></table>
    </div>`}</${Shown}>
    ${config.earlier && html`<${Moved} solver=${solver} />`}
  </div>`;
}

const VIEWS = { grid: Grid, timeline: Timeline, coverage: Coverage, changes: Changes };
