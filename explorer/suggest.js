// How what is being typed may go on, by the words of the matrix.

const OPERATOR = /^([^=<>!~]+)(===?|~=|!=|>=?|<=?)(.*)$/;

export class Suggestions {
  constructor(words) {
    this.words = words;
    this.components = new Map(words.components.map((part) => [part.name, part]));
    this.names = words.components
      .filter((part) => !part.builds_of)
      .flatMap((part) => [part, ...part.aliases.map((name) => ({ ...part, called: name }))]);
  }

  /** Requests: names of components, then their releases. */
  request = (typed) => {
    const said = typed.match(OPERATOR);
    if (said) return this.releases(said[1])(said[3]).map(({ word }) => ({ word: said[1] + said[2] + word }));
    return ranked(this.names, typed, (part) => part.called ?? part.name, (part) => part.title).map((part) => ({
      word: part.name,
      about: part.title,
    }));
  };

  releases = (name) => (typed) =>
    ranked((this.components.get(name)?.releases ?? []).map((word) => ({ word })), typed.replace(/^[=<>!~]+/, ""), (one) => one.word);

  component = (typed) =>
    ranked(this.words.components, typed, (part) => part.name, (part) => part.title).map((part) => ({
      word: part.name,
      about: part.title,
    }));

  device = (typed) => {
    const known = this.words.devices.flatMap(({ device, products }) => [
      { word: device, about: products.slice(0, 2).join(", ") },
      ...products.map((word) => ({ word, about: device })),
    ]);
    return ranked(known, typed.trim(), (one) => one.word, (one) => one.about);
  };

  option = (name) => this.words.options[name];
}

/** Those whose name begins with a text first, then those that have it in name or title. */
function ranked(list, typed, name, title = () => "") {
  const text = typed.toLowerCase();
  const begins = list.filter((one) => name(one).toLowerCase().startsWith(text));
  const holds = list.filter(
    (one) => !begins.includes(one) && `${name(one)} ${title(one)}`.toLowerCase().includes(text),
  );
  return [...begins, ...(text ? holds : [])];
}
