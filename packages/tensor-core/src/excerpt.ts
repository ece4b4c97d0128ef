/** Characters of a value that messages show unless told otherwise. */
const shownCharacters = 60;

/**
 * As JSON writes a string; and what a terminal could take for a command, a line break or a change of direction is
 * escaped, too.
 */
const quote = (text: string): string =>
  JSON.stringify(text).replace(
    /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

/**
 * Show a value of unknown origin in a message: as JSON on one line, cut after `most` characters. The value may be of
 * any size and depth, and may hold itself.
 *
 * Cost: O(most), but for an object, whose keys are listed before the first is shown.
 * @example
 * excerpt({ a: [1, "b"] }); // {"a":[1,"b"]}
 * excerpt("x".repeat(1e6), 8); // "xxxx...
 */
export const excerpt = (value: unknown, most: number = shownCharacters): string => {
  let text = "";
  // Each call writes a character before it goes deeper, so that depth is bounded by what is shown.
  const write = (part: unknown): void => {
    if (text.length > most) return;
    if (typeof part === "string") text += quote(part.slice(0, most + 1));
    else if (Array.isArray(part)) {
      text += "[";
      for (let i = 0; i < part.length && text.length <= most; i++) {
        if (i > 0) text += ",";
        write(part[i]);
      }
      text += "]";
    } else if (typeof part === "object" && part !== null) {
      text += "{";
      let separator = "";
      for (const key in part) {
        if (text.length > most) break;
        text += `${separator}${quote(key.slice(0, most + 1))}:`;
        write((part as Record<string, unknown>)[key]);
        separator = ",";
      }
      text += "}";
    } else text += part === undefined ? "nothing" : String(part);
  };
  write(value);
  return text.length > most ? `${text.slice(0, most - 3)}...` : text;
};

/**
 * Show a name of unknown origin in a message: as `excerpt`, but what is longer than `most` is cut in its middle. Names
 * of one kind, such as those of a model's tensors, differ at their ends.
 *
 * Cost: O(most).
 * @example excerptName("encoder.layers.10.attention.output.bias", 24); // "encoder....output.bias"
 */
export const excerptName = (name: string, most: number = shownCharacters): string => {
  const text = quote(name.length > 2 * most ? name.slice(0, most) + name.slice(-most) : name);
  if (text.length <= most) return text;
  const begin = Math.floor(most / 3);
  return `${text.slice(0, begin)}...${text.slice(begin + 3 - most)}`;
};
