// Rules for names and values of metrics, parameters and tags. Texts are truncated to the lengths that every server
// since MLflow 1.28 accepts.
const maxKeyLength = 250;
const maxValueLength = 500;

/** Truncates a text without splitting a surrogate pair, because a server that stores UTF-8 rejects half of a pair. */
const cutTo = (text: string, length: number): string => {
  const end = text.codePointAt(length - 1)! > 0xffff ? length - 1 : length;
  return text.length <= length ? text : text.slice(0, end);
};

/**
 * Converts a name to a valid MLflow key with letters, digits and `_-. /`. The key is a normalized path, because servers
 * may use it as a file path. Colons are replaced, because servers on Windows reject colons.
 */
export const mlflowKey = (name: string): string => {
  const parts = cutTo(name.replaceAll(/[^\p{L}\p{N}_\-. /]/gu, "_"), maxKeyLength)
    .split("/")
    .filter((part) => part !== "" && part !== ".");
  const path = parts.map((part) => (part === ".." ? "__" : part)).join("/");
  return path.replace(/^\.\./, "__") || "_"; // a server treats a leading `..` as a path outside its folder
};

/** Converts a value to text that MLflow and its database can store. */
export const mlflowText = (value: string): string => cutTo(value, maxValueLength).toWellFormed().replaceAll("\0", " ");

/**
 * Makes the keys of parameters or tags unique by appending numbers to repeated keys, because servers reject a request
 * with duplicate keys.
 */
export const uniqueKeys = <Entry extends { readonly key: string }>(entries: readonly Entry[]): Entry[] => {
  const used = new Set<string>();
  return entries.map((entry) => {
    let { key } = entry;
    for (let again = 2; used.has(key); again++) key = `${entry.key.slice(0, maxKeyLength - 8)}_${again}`;
    used.add(key);
    return { ...entry, key };
  });
};
