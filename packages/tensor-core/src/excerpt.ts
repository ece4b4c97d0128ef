import { visibleLine } from "./visible-text.ts";

/** Default maximum number of characters of a value in a message. */
const defaultCharacters = 60;

/** Formats a text as a JSON string literal; also escapes characters that terminals interpret. */
const quote = (text: string): string => visibleLine(JSON.stringify(text));

/**
 * Formats a value of unknown origin for a message: as JSON on one line, shortened to at most `most` characters. The
 * value may have any size and depth, and may contain cycles.
 *
 * Cost: O(most), except for an object: all its keys are enumerated first.
 * @example
 * excerpt({ a: [1, "b"] }); // {"a":[1,"b"]}
 * excerpt("x".repeat(1e6), 8); // "xxxx...
 */
export const excerpt = (value: unknown, most: number = defaultCharacters): string => {
  let text = "";
  // Each call writes a character before it recurses, so the depth is bounded by the number of characters shown.
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
 * Formats a name of unknown origin for a message: like `excerpt`, but a name longer than `most` is cut in its middle,
 * because similar names, such as tensor names of a model, often differ only in their last characters.
 *
 * Cost: O(most).
 * @example
 * ```ts
 * console.log(excerptName("encoder.layers.10.attention.output.bias", 24)); // "encoder....output.bias"
 * ```
 */
export const excerptName = (name: string, most: number = defaultCharacters): string => {
  const text = quote(name.length > 2 * most ? name.slice(0, most) + name.slice(-most) : name);
  if (text.length <= most) return text;
  const begin = Math.floor(most / 3);
  return `${text.slice(0, begin)}...${text.slice(begin + 3 - most)}`;
};
