// What a server takes as names and values of metrics, parameters and tags. Longer ones are cut: what every server takes
// (since 1.28; later ones take more).
const mostKeyLength = 250;
const mostValueLength = 500;

/** Not cut within a character: a server that keeps UTF-8 refuses the half of one. */
const cutTo = (text: string, length: number): string => {
  const end = text.codePointAt(length - 1)! > 0xffff ? length - 1 : length;
  return text.length <= length ? text : text.slice(0, end);
};

/**
 * A name as MLflow takes it: letters, digits and `_-. /`, and a path that is its own shortest form, since servers may
 * keep a file under it. Colons are taken by servers that are not on Windows.
 */
export const mlflowKey = (name: string): string => {
  const parts = cutTo(name.replaceAll(/[^\p{L}\p{N}_\-. /]/gu, "_"), mostKeyLength)
    .split("/")
    .filter((part) => part !== "" && part !== ".");
  const path = parts.map((part) => (part === ".." ? "__" : part)).join("/");
  return path.replace(/^\.\./, "__") || "_"; // a server takes what begins so for a way out
};

/** A value as MLflow takes it, which a database has to hold. */
export const mlflowText = (value: string): string => cutTo(value, mostValueLength).toWellFormed().replaceAll("\0", " ");

/** The same entries under names of which no two are alike: a request with two of a name is refused. */
export const uniqueKeys = <Entry extends { readonly key: string }>(entries: readonly Entry[]): Entry[] => {
  const taken = new Set<string>();
  return entries.map((entry) => {
    let { key } = entry;
    for (let again = 2; taken.has(key); again++) key = `${entry.key.slice(0, mostKeyLength - 8)}_${again}`;
    taken.add(key);
    return { ...entry, key };
  });
};
