// A grid of two components, coloured by verdict and marked by evidence; a cell tells its facts when it is reached.
import { useEffect, useState } from "preact/hooks";
import { Evidence, FactList, Mark, html, sign } from "./parts.js";

// Milliseconds on a cell before its facts are looked up.
const PATIENCE = 250;
const LETTERS = { ran: "r", artifact: "a", tested: "t", stated: "s", derived: "d", reported: "p", unknown: "" };
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export function Heat({ grid, solver }) {
  const columns = Object.keys(grid.grid[0]?.cells ?? {});
  const [at, setAt] = useState([0, 0]);
  const [shown, setShown] = useState(null);
  const place = (event) => {
    const cell = event.target.closest("td");
    return cell && [Number(cell.dataset.row), Number(cell.dataset.column)];
  };
  const reach = (event) => {
    const found = place(event);
    if (found) setAt(found);
  };
  const move = (event) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const row = Math.min(Math.max(at[0] + step[0], 0), grid.grid.length - 1);
    const column = Math.min(Math.max(at[1] + step[1], 0), columns.length - 1);
    event.currentTarget.querySelector(`td[data-row="${row}"][data-column="${column}"]`).focus();
  };
  useEffect(() => {
    const waiting = setTimeout(() => setShown(at), PATIENCE);
    return () => clearTimeout(waiting);
  }, [at[0], at[1]]);
  const told = (row, column) => {
    const line = grid.grid[row];
    return { line, column: columns[column], cell: line.cells[columns[column]] };
  };
  const now = told(...at);
  return html`<div>
    <ul class="legend" aria-label="legend">
      ${["yes", "no", "unknown"].map((word) => html`<li><${Mark} word=${word} /></li>`)}
      ${Object.entries(LETTERS).filter(([, letter]) => letter).map(([word, letter]) => html`<li><code>${letter}</code> ${word}</li>`)}
    </ul>
    <div class="map"><div class="scroll">
      <table class="heat" role="grid" aria-label=${`${grid.rows} by ${grid.columns}`} onKeyDown=${move} onFocusIn=${reach} onMouseOver=${reach}>
        <thead><tr><th scope="col">${grid.rows} \\ ${grid.columns}</th>${columns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
        <tbody>${grid.grid.map((line, row) => html`<${Line} key=${line.row} line=${line} row=${row} columns=${columns} reached=${at[0] === row ? at[1] : -1} />`)}</tbody>
      </table>
    </div>
    <section class="cell" aria-live="polite" aria-label="cell">
      <p><strong>${grid.rows} ${now.line.row} × ${grid.columns} ${now.column}</strong> <${Mark} word=${now.cell.value} /> <${Evidence} word=${now.cell.evidence} /></p>
      ${shown && shown[0] === at[0] && shown[1] === at[1] && now.cell.facts.length > 0 && html`<${FactList} solver=${solver} ids=${now.cell.facts} />`}
      ${now.cell.facts.length === 0 && html`<p class="remark">no fact speaks of the two</p>`}
    </section></div>
  </div>`;
}

function Line({ line, row, columns, reached }) {
  return html`<tr><th scope="row" title=${line.releases.join(" ")}>${line.row}</th>
    ${columns.map((name, column) => {
      const { value, evidence } = line.cells[name];
      return html`<td class="${value} ${evidence}" data-row=${row} data-column=${column} tabindex=${column === reached ? 0 : -1}><span aria-hidden="true">${sign(value)}<small>${LETTERS[evidence]}</small></span><span class="unseen">${value}, ${evidence}</span></td>`;
    })}</tr>`;
}
