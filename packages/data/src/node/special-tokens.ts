import { tokensOf } from "../token-ids.ts";

/** A token that is matched as a whole in a text, as listed under `added_tokens` of `tokenizer.json`. */
interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special?: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const addedTokens = (tokenizer: Fields): AddedToken[] => {
  const tokens: readonly unknown[] = Array.isArray(tokenizer["added_tokens"]) ? tokenizer["added_tokens"] : [];
  return tokens.filter(
    (token): token is AddedToken & Fields => isFields(token) && typeof token["content"] === "string",
  );
};

/** Names of the fields of `tokenizer_config.json` that contain one special token each. */
const roles = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];
/** Names of the fields of `tokenizer_config.json` that contain further special tokens, as a list or as an object. */
const lists = ["additional_special_tokens", "extra_special_tokens"];

const listed = (tokens: unknown): unknown[] =>
  typeof tokens === "object" && tokens !== null ? Object.values(tokens) : [tokens];

/** Maximum number of unused ids below the largest id of a tokenizer. */
const maxGaps = 1024;

/**
 * Returns the text of a token in a configuration file, which stores a token as a text or as an object with `content`.
 */
export const contentOf = (token: unknown): string | undefined => {
  const content = isFields(token) ? token["content"] : token;
  return typeof content === "string" ? content : undefined;
};

/**
 * Returns the content of `tokenizer.json`, extended by the special tokens that only `tokenizer_config.json` lists. Each
 * special token in a text is encoded as one token, and special tokens are omitted from decoded text, as in
 * transformers. `added_tokens_decoder` overrides the flags of a token. A token without an id in either file is skipped,
 * because the model has no embedding for it.
 */
export const withSpecialTokens = (tokenizer: Fields, config: Fields): Fields => {
  const ids = new Map(tokensOf(tokenizer));
  const usedIds = new Set(ids.values());
  const added = new Map(addedTokens(tokenizer).map((token) => [token.content, token]));
  const decoder = config["added_tokens_decoder"];
  const further = Object.entries(isFields(decoder) ? decoder : {});
  const isFree = (id: number): boolean =>
    Number.isInteger(id) && id >= 0 && id < ids.size + further.length + maxGaps && !usedIds.has(id);
  for (const [key, token] of further) {
    const content = contentOf(token);
    if (content === undefined || !isFields(token)) continue;
    const id = ids.get(content) ?? (isFree(Number(key)) ? Number(key) : undefined);
    if (id !== undefined) added.set(content, { ...added.get(content), ...token, content, id: id as number });
  }
  const named = [...roles.map((role) => config[role]), ...lists.flatMap((list) => listed(config[list]))];
  for (const token of named) {
    const content = contentOf(token);
    if (content === undefined || added.has(content)) continue;
    const id = ids.get(content);
    if (id !== undefined)
      added.set(content, { ...(isFields(token) && token), content, id: id as number, special: true });
  }
  return { ...tokenizer, added_tokens: [...added.values()] };
};
