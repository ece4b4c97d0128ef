import type { ShardPlace, ShardSample } from "./shard-place.ts";

/** Tokens of a text, or bytes. */
export type Tokens = Int32Array | Uint8Array;

/** Tokens that follow those before. */
export interface TokenPiece {
  readonly tokens: Tokens;
  /** Where in its shard they come from. */
  readonly offset: number;
}

/** Some tokens of the row, and where the first of them stands in its piece. */
interface Part {
  readonly tokens: Tokens;
  readonly place: ShardPlace;
}

const after = ({ tokens, place }: Part, count: number): Part => ({
  tokens: tokens.subarray(count),
  place: { offset: place.offset, skip: place.skip + count },
});

const joined = (parts: readonly Part[], length: number): Tokens => {
  const [{ tokens: like }] = parts as [Part];
  const row = like instanceof Uint8Array ? new Uint8Array(length) : new Int32Array(length);
  let at = 0;
  for (const { tokens } of parts) {
    const taken = tokens.subarray(0, length - at);
    row.set(taken, at);
    at += taken.length;
  }
  return row;
};

/**
 * Windows of T + 1 tokens of a row of them, each one token into the one before, as `textRecords` cuts a text; a rest is
 * left out.
 *
 * @param skip tokens of the first piece that windows before have taken.
 */
export async function* packWindows(
  pieces: AsyncIterable<TokenPiece>,
  windowLength: number,
  skip = 0,
): AsyncGenerator<ShardSample<Tokens>, void> {
  let parts: Part[] = [];
  let length = 0;
  let left = skip;
  for await (const { tokens, offset } of pieces) {
    const part = after({ tokens, place: { offset, skip: 0 } }, left);
    left = 0;
    if (part.tokens.length === 0) continue;
    parts.push(part);
    length += part.tokens.length;
    while (length > windowLength) {
      yield { sample: joined(parts, windowLength + 1), place: parts[0]!.place };
      length -= windowLength;
      let taken = windowLength;
      while (taken > 0) {
        const [first] = parts as [Part];
        if (first.tokens.length > taken) {
          parts = [after(first, taken), ...parts.slice(1)];
          taken = 0;
        } else {
          taken -= first.tokens.length;
          parts.shift();
        }
      }
    }
  }
}
