import { excerpt } from "@skein/tensor-core/backend";

/** Numbers that may be left out: some files reserve some hundreds between words and special tokens. */
const mostHoles = (count: number): number => 64 + Math.floor(count / 32);

type Json = Readonly<Record<string, unknown>>;

const objectOf = (value: unknown): Json => (typeof value === "object" && value !== null ? (value as Json) : {});

/** Tokens of a `tokenizer.json` with their ids as the file has them. */
export function* tokensOf({
  model,
  added_tokens: added,
}: Json): Generator<readonly [token: string, id: unknown], void> {
  const { vocab } = objectOf(model);
  if (Array.isArray(vocab)) for (const [id, entry] of vocab.entries()) yield [String(objectOf(entry)[0]), id];
  else
    for (const [token, id] of Object.entries(objectOf(vocab)))
      if (typeof id === "object" && id !== null)
        yield* Object.entries(id); // of one language of several
      else yield [token, id];
  for (const entry of Array.isArray(added) ? added : []) {
    const { content, id } = objectOf(entry);
    yield [String(content), id];
  }
}

/**
 * What is wrong with the ids of a `tokenizer.json`: each must be a number of the vocabulary, and the vocabulary has
 * about as many numbers as tokens. An id far beyond makes tables and models of that many rows.
 *
 * @returns a clause with the token, its id and the rule; undefined if all ids are sound.
 */
export const tokenIdFault = (description: Json): string | undefined => {
  const tokens = new Set<string>();
  let greatest: { readonly token: string; readonly id: number } = { token: "", id: -1 };
  for (const [token, id] of tokensOf(description)) {
    tokens.add(token);
    if (!Number.isSafeInteger(id) || (id as number) < 0)
      return `token ${excerpt(token)} has the id ${excerpt(id)}, but ids are whole numbers from 0`;
    if ((id as number) > greatest.id) greatest = { token, id: id as number };
  }
  const count = tokens.size;
  if (greatest.id >= count + mostHoles(count))
    return `token ${excerpt(greatest.token)} has the id ${greatest.id}, but there are ${count} tokens, so ids go from 0 to ${count - 1}`;
  return undefined;
};
