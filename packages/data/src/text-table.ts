/** Many texts, such as the paths of a million files, stored in two shared arrays. */
export interface TextTable {
  /** UTF-8 bytes of all texts, concatenated. */
  readonly bytes: Uint8Array<SharedArrayBuffer>;
  /** End offset of each text in bytes. Text i + 1 begins at `ends[i]`. */
  readonly ends: Float64Array<SharedArrayBuffer>;
}

/** Stores texts in shared memory, which is posted to a thread without a copy. An array of strings would be copied. */
export const textTable = (texts: readonly string[]): TextTable => {
  const encoder = new TextEncoder();
  const ends = new Float64Array(new SharedArrayBuffer(8 * texts.length));
  let total = 0;
  const encoded = texts.map((text, i) => {
    const bytes = encoder.encode(text);
    ends[i] = total += bytes.length;
    return bytes;
  });
  const bytes = new Uint8Array(new SharedArrayBuffer(total));
  for (const [i, text] of encoded.entries()) bytes.set(text, ends[i]! - text.length);
  return { bytes, ends };
};

/** Returns text `index` of a table. */
export const textAt = ({ bytes, ends }: TextTable, index: number): string =>
  new TextDecoder().decode(bytes.slice(index === 0 ? 0 : ends[index - 1]!, ends[index]!));
