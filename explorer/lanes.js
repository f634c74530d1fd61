// Releases of one component along time, and which releases of others each goes with.
import { html } from "./parts.js";

const WIDE = 900;
const LEFT = 170;
const HIGH = 16;

export function Lanes({ timeline }) {
  const days = timeline.releases.map(({ date }) => Date.parse(date));
  const first = Math.min(...days);
  const last = Math.max(...days, Date.parse(timeline.matrix.date));
  const x = (day) => LEFT + ((Date.parse(day) - first) / (last - first || 1)) * (WIDE - LEFT - 20);
  const years = [];
  for (let year = new Date(first).getUTCFullYear() + 1; year <= new Date(last).getUTCFullYear(); year++) years.push(year);
  return html`<div>
    <p>Each bar goes from the first to the last release of ${timeline.component} that goes with a release at the left, by the days on which they came out. No newer release than the last is known to go with it.</p>
    ${timeline.lanes.map((lane) => html`<section aria-label=${lane.component}>
      <h2>${lane.component} <small>from ${lane.from}</small></h2>
      <div class="scroll" tabindex="0" role="region" aria-label=${`${timeline.component} and ${lane.component} along time`}>
        <svg class="lanes" viewBox=${`0 0 ${WIDE} ${(lane.spans.length + 1) * HIGH + 4}`} role="img" aria-label=${`releases of ${timeline.component} that go with ${lane.component}; the table below says the same`}>
          ${years.map((year) => html`<g key=${year}><line x1=${x(`${year}-01-01`)} x2=${x(`${year}-01-01`)} y1="0" y2=${(lane.spans.length + 1) * HIGH} /><text x=${x(`${year}-01-01`) + 2} y="11">${year}</text></g>`)}
          ${lane.spans.map((span, place) => html`<g key=${place}>
            <text x="4" y=${(place + 2) * HIGH - 4}>${named(span)}</text>
            ${span.runs.map((run) => html`<rect class=${run.evidence} x=${x(run.from)} width=${Math.max(x(run.to) - x(run.from), 4)} y=${(place + 1) * HIGH + 2} height=${HIGH - 4} rx="2"><title>${told(timeline, lane, span, run)}</title></rect>`)}
          </g>`)}
        </svg>
      </div>
      <details><summary>As a table</summary><table class="table"><thead><tr><th scope="col">${lane.component}</th><th scope="col">${timeline.component}</th></tr></thead>
        <tbody>${lane.spans.map((span) => html`<tr><th scope="row">${span.releases.join(" ")}</th><td><ul>${span.runs.map((run) => html`<li>${run.first} to ${run.last} (${run.from} to ${run.to}), ${run.evidence}</li>`)}</ul></td></tr>`)}</tbody></table></details>
    </section>`)}
  </div>`;
}

const told = (timeline, lane, span, run) =>
  `${lane.component} ${named(span)}: ${timeline.component} ${run.first} to ${run.last}, ${run.from} to ${run.to}, ${run.evidence}`;

const named = ({ releases }) => (releases.length > 1 ? `${releases[0]} to ${releases.at(-1)}` : releases[0]);
