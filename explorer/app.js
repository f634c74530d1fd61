// The page: which view the address names, and how far the program is.
import { render } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { read, said, words, write } from "./address.js";
import { Answer } from "./answer.js";
import { Ask } from "./ask.js";
import { LOOKS, Look } from "./look.js";
import { html } from "./parts.js";
import { Solver } from "./solver.js";
import { Suggestions } from "./suggest.js";

const config = JSON.parse(document.getElementById("config").textContent);
const solver = new Solver(config);

function first() {
  const found = read(location.hash);
  if (found.view in LOOKS || found.view === "resolve" || found.view === "why-not") return found;
  return { view: config.default.command, said: said(config.default.words), implied: true };
}

function Page() {
  const [at, setAt] = useState(first);
  const [suggestions, setSuggestions] = useState(null);
  // Effects run after the first paint, and an address may change before that.
  useLayoutEffect(() => {
    const moved = () => setAt(first());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    solver.words.then((words) => setSuggestions(new Suggestions(words)));
    // When the first answer stands there: what starts the program takes the processor.
    requestAnimationFrame(() => setTimeout(() => solver.start()));
  }, []);
  const looking = at.view in LOOKS;
  const asked = words(at.said);
  useEffect(() => {
    document.title = `${looking ? LOOKS[at.view] : asked.join(" ")} - toolmatrix`;
  });
  const ask = (command, said) => {
    location.hash = write(command, said);
  };
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>to the answer</a>
    <header>
      <div><h1>toolmatrix</h1><p>Which versions of a machine-learning tool chain go together, and why.</p></div>
      <nav aria-label="views">
        <a href=${write(config.default.command, said(config.default.words))} aria-current=${looking ? undefined : "page"}>Ask</a>
        ${Object.entries(LOOKS).map(([view, title]) => html`<a href="#${view}" aria-current=${at.view === view ? "page" : undefined}>${title}</a>`)}
      </nav>
    </header>
    <${Progress} />
    ${!looking && html`<${Ask} key=${write(at.view, at.said)} view=${at.view} said=${at.said} config=${config} suggestions=${suggestions} onAsk=${ask} />`}
    <main id="main" tabindex="-1">
      ${looking
        ? html`<${Look} key=${at.view} view=${at.view} said=${at.said} solver=${solver} config=${config} suggestions=${suggestions} />`
        : html`<${Answer} solver=${solver} command=${at.view} words=${asked} />`}
    </main>
    <footer><p>toolmatrix ${config.about.version}, matrix of ${config.about.date}, <code>${config.about.digest}</code>. Everything is answered in this browser by the program itself; no question leaves it.</p></footer>`;
}

function Progress() {
  const [state, setState] = useState(solver.state);
  useEffect(() => {
    solver.listeners.add(setState);
    return () => solver.listeners.delete(setState);
  }, []);
  if (state.failed) return html`<p class="failed" role="alert">The program did not start, and only what was answered before is shown: ${state.failed}</p>`;
  if (state.ready) return html`<p class="progress done" role="status">ready</p>`;
  return html`<p class="progress" role="status"><label>${state.what} <progress max="1" value=${state.done} aria-label="start of the program"></progress></label></p>`;
}

const place = document.getElementById("page");
place.textContent = "";
render(html`<${Page} />`, place);
