import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DataError } from "../errors.ts";
import type { Tokenizer } from "../tokenizer.ts";
import { readerPackages } from "./data-packages.ts";
import { isFolder } from "./files-below.ts";
import { requirePackage } from "./optional-package.ts";
import { contentOf, withSpecialTokens } from "./special-tokens.ts";

/** The file of a tokenizer in a folder of Hugging Face's layout. */
export const tokenizerFile = "tokenizer.json";
const configFile = "tokenizer_config.json";

/** A decoder of the package, which may be made of others. */
interface DecoderOfPackage {
  text_decoder?: TextDecoder;
  readonly decoders?: readonly (DecoderOfPackage | null)[];
}

/** What we use of the package. */
interface TokenizerOfPackage {
  readonly decoder: DecoderOfPackage | null;
  encode(text: string, options: { readonly add_special_tokens: boolean }): { readonly ids: readonly number[] };
  decode(
    tokens: readonly number[],
    options: { readonly skip_special_tokens: boolean; readonly clean_up_tokenization_spaces: boolean },
  ): string;
  token_to_id(token: string): number | undefined;
  get_vocab(withAddedTokens: boolean): Map<string, number>;
}

type TokenizerClass = new (tokenizer: object, config: object) => TokenizerOfPackage;

const readObject = (path: string): Readonly<Record<string, unknown>> => {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw new DataError(
      `${path} cannot be read (${(cause as NodeJS.ErrnoException).code}); name a ${tokenizerFile}, or a folder with one`,
      { cause },
    );
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>;
  } catch {
    // told below
  }
  throw new DataError(`${path} holds no JSON object, so it is no ${tokenizerFile}; restore it from another copy`);
};

/** Byte tokens of a byte order mark stay one, as in Hugging Face's tokenizers; the package of 0.2 drops it. */
const keepByteOrderMarks = (decoder: DecoderOfPackage | null): void => {
  if (decoder?.text_decoder !== undefined) decoder.text_decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  decoder?.decoders?.forEach(keepByteOrderMarks);
};

/**
 * Whether decoding removes spaces before punctuation. Only WordPiece is decoded so, as transformers 5 does: its words
 * come without spaces. Byte pairs and unigrams hold the spaces of a text.
 */
const cleansUpSpaces = (tokenizer: Readonly<Record<string, unknown>>, config: Readonly<Record<string, unknown>>) =>
  (tokenizer["model"] as { readonly type?: unknown } | undefined)?.type === "WordPiece" &&
  config["clean_up_tokenization_spaces"] === true;

/**
 * A tokenizer as Hugging Face keeps it, by package `@huggingface/tokenizers`: `tokenizer.json`, and
 * `tokenizer_config.json` beside it where it is there, which names the end of a text.
 *
 * @param place the file, or its folder.
 * @param from file URL of the module whose dependencies are searched for the package: `import.meta.url`.
 * @throws DataError when the package is not installed, with the command that installs it, or the file cannot be used.
 * @example const { encode } = loadTokenizer("checkpoints/llama", import.meta.url);
 */
export const loadTokenizer = (place: string, from: string): Tokenizer => {
  const path = isFolder(place) ? join(place, tokenizerFile) : place;
  const beside = join(dirname(path), configFile);
  const config = existsSync(beside) ? readObject(beside) : {};
  const description = withSpecialTokens(readObject(path), config);
  const { Tokenizer: TokenizerOfFile } = requirePackage(readerPackages.tokenizers, from) as {
    Tokenizer: TokenizerClass;
  };
  let tokenizer: TokenizerOfPackage;
  let vocabulary = 0;
  try {
    // The description has these tokens now; the package takes them as a list of texts only.
    tokenizer = new TokenizerOfFile(description, { ...config, additional_special_tokens: [] });
    keepByteOrderMarks(tokenizer.decoder);
    for (const id of tokenizer.get_vocab(true).values()) vocabulary = Math.max(vocabulary, id + 1);
  } catch (cause) {
    throw new DataError(
      `${path} is no tokenizer that ${readerPackages.tokenizers.name} reads (${(cause as Error).message}); save it again with Hugging Face's tokenizers`,
      { cause },
    );
  }
  const end = contentOf(config["eos_token"]);
  const options = {
    skip_special_tokens: true,
    clean_up_tokenization_spaces: cleansUpSpaces(description, config),
  };
  const encode = (text: string, withSpecial: boolean): Int32Array =>
    Int32Array.from(tokenizer.encode(text, { add_special_tokens: withSpecial }).ids);
  return {
    vocabulary,
    encode: (text) => encode(text, false),
    encodePrompt: (text) => encode(text, true),
    // The package decodes no empty list.
    decode: (tokens) => (tokens.length === 0 ? "" : tokenizer.decode(Array.from(tokens), options)),
    endOfText: end === undefined ? undefined : tokenizer.token_to_id(end),
  };
};
