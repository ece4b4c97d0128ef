/**
 * GPT-2's way to make symbols of bytes: a printable character for each of the 256, so that any text is words of them.
 * Source: Radford, Wu, Child, Luan, Amodei and Sutskever 2019, Language Models are Unsupervised Multitask Learners.
 */

/** Bytes whose character is printable and no space stand for themselves; the others take characters from 256 on. */
const isOwnCharacter = (byte: number): boolean =>
  (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;

/** The character of each byte, by its number. */
export const byteCharacters: readonly string[] = ((): string[] => {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isOwnCharacter(byte) ? byte : next++));
})();

/**
 * GPT-2's words: endings of English, runs of letters, of digits and of other signs, each with a space in front of it,
 * and runs of white space. What white space is, Unicode says, as in Hugging Face's tokenizers; `\s` would differ.
 */
const word =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

const encoder = new TextEncoder();

/** A text as characters of its bytes in UTF-8. */
const inByteCharacters = (text: string): string => {
  let characters = "";
  for (const byte of encoder.encode(text)) characters += byteCharacters[byte]!;
  return characters;
};

/** Counts the words of texts, in characters of bytes. */
export class WordCounts {
  private readonly counts = new Map<string, number>();

  add(text: string): void {
    for (const [found] of text.matchAll(word)) this.counts.set(found, (this.counts.get(found) ?? 0) + 1);
  }

  /** By the word, the first seen first. */
  inByteCharacters(): Map<string, number> {
    return new Map(Array.from(this.counts, ([text, count]) => [inByteCharacters(text), count]));
  }
}
