/** Characters of a message at its beginning, and at its end, where the cure stands. */
const [firstCharacters, lastCharacters] = [2500, 1000];

/**
 * A message as one line of bounded length, whatever names of others' files it quotes: line breaks, commands to
 * terminals and characters without a shape become question marks, and the middle of a long message is left out.
 *
 * @example
 * boundedLine("a\nb"); // a?b
 */
export const boundedLine = (message: string): string =>
  (message.length <= firstCharacters + lastCharacters
    ? message
    : `${message.slice(0, firstCharacters)} … ${message.slice(-lastCharacters)}`
  ).replaceAll(/\p{C}/gu, "?");
