// Questions in the address: `#resolve?q=torch&device=RTX+4090` is `toolmatrix resolve torch --device='RTX 4090'`.

export function read(hash) {
  const [view, query = ""] = hash.replace(/^#/, "").split("?");
  return { view, said: new URLSearchParams(query) };
}

export function write(view, said) {
  const query = said.toString();
  return `#${view}${query ? `?${query}` : ""}`;
}

/** The words of a command line for what an address says. */
export function words(said) {
  const wanted = said.getAll("q").flatMap((text) => text.split(/\s+/).filter(Boolean));
  const options = [...said].filter(([name, value]) => name !== "q" && value);
  return [...wanted, ...options.map(([name, value]) => `--${name}=${value}`)];
}

/** What an address says for the words of a command line. */
export function said(words) {
  const found = new URLSearchParams();
  const rest = [...words];
  while (rest.length) {
    const word = rest.shift();
    if (!word.startsWith("--")) {
      found.append("q", word);
      continue;
    }
    const equals = word.indexOf("=");
    if (equals < 0) found.append(word.slice(2), rest.shift() ?? "");
    else found.append(word.slice(2, equals), word.slice(equals + 1));
  }
  return found;
}
