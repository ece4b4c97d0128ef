/**
 * Characters that a terminal obeys instead of showing them: controls, halves of characters, marks that turn the
 * direction of text, and what ends a line in other ways than a newline.
 */
const obeyed = /[\p{Cc}\p{Cs}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

const escaped = (character: string): string => {
  const json = JSON.stringify(character).slice(1, -1);
  return json === character ? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}` : json;
};

/**
 * Text of unknown origin on one line, as a terminal may show it: what the terminal would obey is written as JSON writes
 * it in strings, so that JSON itself keeps its meaning.
 *
 * @example
 * visibleLine("a\u001b[2J\n"); // a\u001b[2J\n, in letters
 */
export const visibleLine = (text: string): string => text.replaceAll(obeyed, escaped);

/** Characters that `boundedLine` keeps of the beginning of a message, and of its end, where the cure is. */
const [firstCharacters, lastCharacters] = [2500, 1000];

/** `visibleLine` of a message that may quote names of any length: the middle of a long message is left out. */
export const boundedLine = (message: string): string =>
  visibleLine(
    message.length <= firstCharacters + lastCharacters
      ? message
      : `${message.slice(0, firstCharacters)} … ${message.slice(-lastCharacters)}`,
  );

/** `visibleLine` of text in several lines: newlines and tabs stay as they are. */
export const visibleText = (text: string): string =>
  text
    .replaceAll("\r\n", "\n")
    .replaceAll(obeyed, (character) => (character === "\n" || character === "\t" ? character : escaped(character)));
