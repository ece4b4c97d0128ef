import { excerpt } from "@skein/tensor-core/backend";

/**
 * Returns the maximum number of unused ids for a number of tokens. Some files reserve hundreds of ids between words and
 * special tokens.
 */
const maxGaps = (count: number): number => 64 + Math.floor(count / 32);

type Json = Readonly<Record<string, unknown>>;

const objectOf = (value: unknown): Json => (typeof value === "object" && value !== null ? (value as Json) : {});

/** Yields the tokens of a `tokenizer.json` with their ids, without checks. */
export function* tokensOf({
  model,
  added_tokens: added,
}: Json): Generator<readonly [token: string, id: unknown], void> {
  const { vocab } = objectOf(model);
  if (Array.isArray(vocab)) for (const [id, entry] of vocab.entries()) yield [String(objectOf(entry)[0]), id];
  else
    for (const [token, id] of Object.entries(objectOf(vocab)))
      if (typeof id === "object" && id !== null)
        yield* Object.entries(id); // one vocabulary per language
      else yield [token, id];
  for (const entry of Array.isArray(added) ? added : []) {
    const { content, id } = objectOf(entry);
    yield [String(content), id];
  }
}

/**
 * Checks the ids of a `tokenizer.json`. Each id must be a non-negative integer, and the largest id must not exceed the
 * number of tokens by much, because embeddings have one row for each id up to the largest id.
 *
 * @returns a clause with the token, its id and the rule; undefined if all ids are valid.
 */
export const tokenIdFault = (description: Json): string | undefined => {
  const tokens = new Set<string>();
  let greatest: { readonly token: string; readonly id: number } = { token: "", id: -1 };
  for (const [token, id] of tokensOf(description)) {
    tokens.add(token);
    if (!Number.isSafeInteger(id) || (id as number) < 0)
      return `token ${excerpt(token)} has the id ${excerpt(id)}, but ids must be integers from 0`;
    if ((id as number) > greatest.id) greatest = { token, id: id as number };
  }
  const count = tokens.size;
  if (greatest.id >= count + maxGaps(count))
    return `token ${excerpt(greatest.token)} has the id ${greatest.id}, but there are ${count} tokens, so ids must be 0 to ${count - 1}`;
  return undefined;
};
