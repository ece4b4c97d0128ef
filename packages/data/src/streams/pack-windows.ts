import type { ShardPosition, ShardSample } from "./shard-position.ts";

/** Tokens or bytes of a text. */
export type Tokens = Int32Array | Uint8Array;

/** Consecutive tokens of a shard. */
export interface TokenPiece {
  readonly tokens: Tokens;
  /** Offset of these tokens in the shard. */
  readonly offset: number;
}

/** Consecutive tokens, and the position of the first token in the shard. */
interface Part {
  readonly tokens: Tokens;
  readonly position: ShardPosition;
}

const after = ({ tokens, position }: Part, count: number): Part => ({
  tokens: tokens.subarray(count),
  position: { offset: position.offset, skip: position.skip + count },
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
 * Yields windows of T + 1 tokens from a sequence of tokens. Consecutive windows overlap by one token, as in
 * `textRecords`. Remaining tokens at the end are dropped.
 *
 * @param skip Number of tokens at the beginning of the first value of `pieces` that earlier windows have used. Default:
 * 0.
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
    const part = after({ tokens, position: { offset, skip: 0 } }, left);
    left = 0;
    if (part.tokens.length === 0) continue;
    parts.push(part);
    length += part.tokens.length;
    while (length > windowLength) {
      yield { sample: joined(parts, windowLength + 1), position: parts[0]!.position };
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
