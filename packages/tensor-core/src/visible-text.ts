/**
 * Characters that a terminal interprets instead of displaying: control characters, lone surrogates, marks that change
 * the text direction, and line terminators other than a newline.
 */
const controlCharacters = /[\p{Cc}\p{Cs}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

const escapeCharacter = (character: string): string => {
  const json = JSON.stringify(character).slice(1, -1);
  return json === character ? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}` : json;
};

/**
 * Converts text of unknown origin to one line that is safe to print on a terminal: characters that a terminal
 * interprets are escaped as in JSON strings. JSON text keeps its meaning.
 *
 * @example
 * visibleLine("a\u001b[2J\n"); // a\u001b[2J\n, in letters
 */
export const visibleLine = (text: string): string => text.replaceAll(controlCharacters, escapeCharacter);

/**
 * Number of characters that `boundedLine` keeps from the beginning of a message and from its end. The end of a message
 * contains the suggested fix.
 */
const [firstCharacters, lastCharacters] = [2500, 1000];

/** Variant of `visibleLine` that omits the middle of a long message. For messages that quote names of any length. */
export const boundedLine = (message: string): string =>
  visibleLine(
    message.length <= firstCharacters + lastCharacters
      ? message
      : `${message.slice(0, firstCharacters)} … ${message.slice(-lastCharacters)}`,
  );

/** Variant of `visibleLine` for text with several lines: keeps newlines and tabs. */
export const visibleText = (text: string): string =>
  text
    .replaceAll("\r\n", "\n")
    .replaceAll(controlCharacters, (character) =>
      character === "\n" || character === "\t" ? character : escapeCharacter(character),
    );
