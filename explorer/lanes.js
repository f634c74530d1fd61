// Releases of one component along time, which releases of others each goes with, and until when those are supported.
import { Evidence, Facts, html } from "./parts.js";

const WIDE = 960;
const LEFT = 290;
const HIGH = 16;
// Years behind the day of the matrix that are drawn: support of a distribution may go on for ten.
const AHEAD = 3;

export function Lanes({ timeline, solver }) {
  const today = timeline.matrix.date;
  const days = timeline.releases.map(({ date }) => Date.parse(date));
  const first = Math.min(...days);
  const ends = timeline.lanes.flatMap((lane) => lane.spans.map(({ end }) => last(end)).filter(Boolean));
  const latest = Math.min(Math.max(...days, ...ends.map(Date.parse), Date.parse(today)), Date.parse(today) + AHEAD * 366 * 86400000);
  const x = (day) => LEFT + ((Math.min(Math.max(Date.parse(day), first), latest) - first) / (latest - first || 1)) * (WIDE - LEFT - 20);
  const years = [];
  for (let year = new Date(first).getUTCFullYear() + 1; year <= new Date(latest).getUTCFullYear(); year++) years.push(year);
  const names = [...new Set(timeline.lanes.map((lane) => lane.component))];
  return html`<div>
    <p>Each bar goes from the first to the last release of ${timeline.component} that goes with a release at the left, by the days on which they came out. No newer release than the last is known to go with it. A thin line goes on until the support of what stands at the left ends (◆, or an arrow where that is not drawn).</p>
    ${timeline.lanes.map((lane) => html`<section aria-label=${lane.component}>
      <h2>${lane.component} <small>from ${lane.from}${lane.via && `, by way of ${lane.via}`}</small></h2>
      ${lane.spans.every(({ end }) => !end) && html`<p class="remark">Unknown: no source was found that says until when releases of ${lane.component} are supported.</p>`}
      <div class="scroll" tabindex="0" role="region" aria-label=${`${timeline.component} and ${lane.component} along time`}>
        <svg class="lanes" viewBox=${`0 0 ${WIDE} ${(lane.spans.length + 1) * HIGH + 4}`} role="img" aria-label=${`releases of ${timeline.component} that go with ${lane.component}; the table below says the same`}>
          ${years.map((year) => html`<g key=${year}><line x1=${x(`${year}-01-01`)} x2=${x(`${year}-01-01`)} y1="0" y2=${(lane.spans.length + 1) * HIGH} /><text x=${x(`${year}-01-01`) + 2} y="11">${year}</text></g>`)}
          <line class="today" x1=${x(today)} x2=${x(today)} y1="0" y2=${(lane.spans.length + 1) * HIGH} />
          ${lane.spans.map((span, place) => html`<${Row} key=${place} span=${span} place=${place} lane=${lane} timeline=${timeline} x=${x} latest=${latest} />`)}
        </svg>
      </div>
      <details><summary>As a table</summary><div class="scroll" tabindex="0" role="region" aria-label=${`${lane.component} as a table`}><table class="table"><thead><tr><th scope="col">${lane.component}</th><th scope="col">supported</th><th scope="col">${timeline.component}</th></tr></thead>
        <tbody>${lane.spans.map((span) => html`<tr><th scope="row">${span.releases.join(" ")}</th>
          <td>${supported(span.end, today)}${span.end?.branch && `, ${span.end.branch}`} ${span.end && html`<${Evidence} word=${span.end.evidence} /><${Facts} solver=${solver} ids=${[span.end.fact]} />`}</td>
          <td><ul>${span.runs.map((run) => html`<li>${run.first} to ${run.last} (${run.from} to ${run.to}) <${Evidence} word=${run.evidence} /><${Facts} solver=${solver} ids=${run.facts} /></li>`)}</ul></td></tr>`)}</tbody></table></div></details>
    </section>`)}
    <p class="remark">The vertical line is the day of the matrix, ${today}. ${names.length > 1 ? "The lanes are" : "The lane is"} drawn from facts alone: what else a combination needs is a question to ask.</p>
  </div>`;
}

function Row({ span, place, lane, timeline, x, latest }) {
  const today = timeline.matrix.date;
  const y = (place + 1) * HIGH;
  const end = last(span.end);
  const from = x(span.date || timeline.releases[0].date);
  const told = supported(span.end, today);
  return html`<g>
    <text x="4" y=${y + HIGH - 4}>${named(span)}<tspan class="until" dx="6">${lane.spans.some((one) => one.end) ? told : ""}</tspan></text>
    ${end && html`<line class="support" x1=${from} x2=${x(end)} y1=${y + HIGH / 2} y2=${y + HIGH / 2} />`}
    ${span.runs.map((run) => html`<rect class=${run.evidence} x=${x(run.from)} width=${Math.max(x(run.to) - x(run.from), 4)} y=${y + 2} height=${HIGH - 4} rx="2"><title>${`${lane.component} ${named(span)}: ${timeline.component} ${run.first} to ${run.last}, ${run.from} to ${run.to}, ${run.evidence}`}</title></rect>`)}
    ${end && html`<text class="end" x=${x(end)} y=${y + HIGH - 4} text-anchor="middle">${Date.parse(end) > latest ? "→" : x(end) > LEFT ? "◆" : "←"}<title>${`${lane.component} ${named(span)}: ${told}`}</title></text>`}
  </g>`;
}

/** The last day of support, which of a month is its last. */
const last = (end) => (end?.until.length === 7 ? new Date(Date.UTC(...end.until.split("-").map(Number), 0)).toISOString().slice(0, 10) : end?.until);

function supported(end, today) {
  if (!end) return "end unknown";
  if (end.ended_by) return `had ended by ${end.ended_by}`;
  return `${last(end) < today ? "ended" : "until"} ${end.until}`;
}

const named = ({ releases }) => (releases.length > 1 ? `${releases[0]} to ${releases.at(-1)}` : releases[0]);
