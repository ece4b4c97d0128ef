/**
 * Quotes a word for a POSIX shell, so that the shell passes it unchanged. Plain words are not quoted, for readability.
 */
export const shellQuote = (word: string): string =>
  /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;

export const shellCommand = (words: readonly string[]): string => words.map(shellQuote).join(" ");
