/**
 * Byte-level characters of GPT-2: one printable character for each of the 256 byte values, so that any text is a
 * sequence of these characters. Source: Radford, Wu, Child, Luan, Amodei and Sutskever 2019, Language Models are
 * Unsupervised Multitask Learners.
 */

/**
 * Whether a byte is represented by the character with the same code: a printable character other than a space. Other
 * bytes are represented by characters from code 256 upward.
 */
const isOwnCharacter = (byte: number): boolean =>
  (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;

/** Character that represents each byte, indexed by byte. */
export const byteCharacters: readonly string[] = ((): string[] => {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isOwnCharacter(byte) ? byte : next++));
})();

/**
 * Matches the words of GPT-2's pre-tokenization: English contractions, runs of letters, digits or other characters with
 * an optional leading space, and runs of white space. Uses Unicode's White_Space property instead of `\s`, as Hugging
 * Face's tokenizers do.
 */
const word =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

const encoder = new TextEncoder();

/** Converts a text to the characters that represent its UTF-8 bytes. */
const inByteCharacters = (text: string): string => {
  let characters = "";
  for (const byte of encoder.encode(text)) characters += byteCharacters[byte]!;
  return characters;
};

/** Counts the words of texts. Words consist of byte-level characters. */
export class WordCounts {
  private readonly counts = new Map<string, number>();

  add(text: string): void {
    for (const [found] of text.matchAll(word)) this.counts.set(found, (this.counts.get(found) ?? 0) + 1);
  }

  /** Returns the number of occurrences of each word, in order of first occurrence. */
  inByteCharacters(): Map<string, number> {
    return new Map(Array.from(this.counts, ([text, count]) => [inByteCharacters(text), count]));
  }
}
