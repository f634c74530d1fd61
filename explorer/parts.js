// What every view is put together from.
import { h } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import htm from "htm";

export const html = htm.bind(h);

// How a verdict or evidence looks besides its word; never by colour alone.
const SIGNS = { yes: "✓", no: "✗", unknown: "?", error: "!", disputed: "⚠" };

export const sign = (word) => SIGNS[word] ?? "";

export const Mark = ({ word }) =>
  html`<span class="mark ${word}"><span aria-hidden="true">${sign(word)}</span> ${word}</span>`;

export const Evidence = ({ word }) =>
  word && html`<span class="evidence ${word}">${word === "unknown" ? html`<span aria-hidden="true">? </span>` : ""}${word}</span>`;

/** Numbers of sources, each a link to its place or to its line in the list of sources. */
export const Cited = ({ numbers, notes }) =>
  numbers.map((number) => {
    const note = notes[number - 1];
    const title = `source ${number}: ${note.title}`;
    return note.address
      ? html` <a class="cite" href=${note.address} rel="noreferrer" title=${title} aria-label=${title}>[${number}]</a>`
      : html` <span class="cite" title=${title}>[${number}]</span>`;
  });

export const Place = ({ source }) =>
  source.address ? html`<a href=${source.address} rel="noreferrer">${source.at}</a>` : html`<span>${source.at}</span>`;

export function Copy({ text, what }) {
  const [told, tell] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      tell("copied");
    } catch {
      tell("the browser refused; select the text");
    }
    setTimeout(() => tell(""), 3000);
  };
  return html`<span class="copy">
    <button type="button" onClick=${copy} aria-label=${`copy ${what}`}>copy</button>
    <span role="status">${told}</span>
  </span>`;
}

export const Code = ({ text, what }) =>
  html`<div class="code"><pre tabindex="0" role="region" aria-label=${what}>${text}</pre><${Copy} text=${text} what=${what} /></div>`;

/** The document that answers a question: undefined while it is on its way. */
export function useAnswer(solver, kind, said) {
  const asked = JSON.stringify([kind, said]);
  const [found, setFound] = useState({});
  useEffect(() => {
    let gone = false;
    if (said)
      solver.ask(kind, said).then(
        (document) => gone || setFound({ asked, document }),
        (error) => gone || setFound({ asked, document: failure(error) }),
      );
    return () => {
      gone = true;
    };
  }, [asked]);
  return found.asked === asked ? found.document : undefined;
}

const failure = (error) => ({
  schema: "toolmatrix.error/1",
  error: { code: "", what: "the page could not ask its program", found: error.message, expected: "", help: "" },
});

export function Refused({ error }) {
  const rest = ["expected", "found", "help"].filter((name) => error[name]);
  return html`<div class="refused" role="alert">
    <p><${Mark} word="error" /> <strong>${error.what}</strong> ${error.code}</p>
    <dl>${rest.map((name) => html`<dt>${name}</dt><dd>${error[name]}</dd>`)}</dl>
  </div>`;
}

/** Facts in full, which are asked for when they are opened. */
export function Facts({ solver, ids }) {
  const [open, setOpen] = useState(false);
  if (!ids?.length) return null;
  return html`<details class="facts" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${ids.length === 1 ? "1 fact" : `${ids.length} facts`}</summary>
    ${open && html`<${FactList} solver=${solver} ids=${ids} />`}
  </details>`;
}

export function FactList({ solver, ids }) {
  const document = useAnswer(solver, "facts", { ids });
  if (!document) return html`<p class="wait">looking facts up</p>`;
  if (document.error) return html`<${Refused} error=${document.error} />`;
  return html`<ul class="factlist">
    ${document.facts.map((fact) => html`<li>
      <${Evidence} word=${fact.evidence} /> ${fact.text}
      <br /><small><${Place} source=${fact.source} />${fact.where && ` (${fact.where})`}, read ${fact.source.read}; <code>${fact.id}</code></small>
    </li>`)}
  </ul>`;
}

// So many suggestions are shown.
const MOST = 12;

/** A text field that suggests how its last word may go on: an editable combobox of the ARIA practices. */
export function Suggesting({ label, value, onValue, suggest, help, several = false, apart = /\s+/ }) {
  const id = useId();
  const [at, setAt] = useState(-1);
  const [open, setOpen] = useState(false);
  const typed = several ? value.split(apart).at(-1) : value;
  const found = open ? suggest(typed).slice(0, MOST) : [];
  const take = (word) => {
    onValue(value.slice(0, value.length - typed.length) + word);
    setOpen(false);
    setAt(-1);
  };
  const key = (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (!open) setOpen(true);
      else if (found.length) setAt((at + step + found.length) % found.length);
    } else if (event.key === "Enter" && found[at]) {
      event.preventDefault();
      take(found[at].word);
    } else if (event.key === "Escape" && open) {
      event.preventDefault();
      setOpen(false);
    }
  };
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <input id=${id} type="text" role="combobox" autocomplete="off" autocapitalize="none" spellcheck=${false}
      aria-autocomplete="list" aria-expanded=${found.length > 0} aria-controls=${`${id}-list`}
      aria-activedescendant=${found[at] ? `${id}-${at}` : undefined} aria-describedby=${help ? `${id}-help` : undefined}
      value=${value}
      onInput=${(event) => { onValue(event.currentTarget.value); setOpen(true); setAt(-1); }}
      onKeyDown=${key} onBlur=${() => setOpen(false)} />
    <ul id=${`${id}-list`} role="listbox" aria-label=${label} hidden=${!found.length}>
      ${found.map(({ word, about }, place) => html`<li id=${`${id}-${place}`} role="option" aria-selected=${place === at}
        onMouseDown=${(event) => { event.preventDefault(); take(word); }}>${word}${about && html` <small>${about}</small>`}</li>`)}
    </ul>
    ${help && html`<small id=${`${id}-help`}>${help}</small>`}
  </div>`;
}

export const Choice = ({ label, name, value, options, onValue }) => html`<fieldset class="choice">
  <legend>${label}</legend>
  ${["", ...options].map((word) => html`<label>
    <input type="radio" name=${name} value=${word} checked=${value === word} onChange=${() => onValue(word)} />
    ${word || "as usual"}
  </label>`)}
</fieldset>`;
