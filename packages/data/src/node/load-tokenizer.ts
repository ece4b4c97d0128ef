import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { excerpt } from "@skein/tensor-core/backend";
import { DataError } from "../errors.ts";
import { tokenIdFault } from "../token-ids.ts";
import type { Tokenizer } from "../tokenizer.ts";
import { readerPackages } from "./data-packages.ts";
import { readText } from "./file-pieces.ts";
import { isFolder } from "./files-below.ts";
import { requirePackage } from "./optional-package.ts";
import { contentOf, withSpecialTokens } from "./special-tokens.ts";
import { withinTime } from "./within-time.ts";

/** Name of the tokenizer file in Hugging Face's folder layout. */
export const tokenizerFile = "tokenizer.json";
const configFile = "tokenizer_config.json";

/** Members of a tokenizer's decoder that this module uses. A decoder may be a sequence of decoders. */
interface DecoderOfPackage {
  text_decoder?: TextDecoder;
  readonly decoders?: readonly (DecoderOfPackage | null)[];
}

/** Members of a tokenizer of `@huggingface/tokenizers` that this module uses. */
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

/**
 * Fixed part of the timeout for encoding or decoding, in milliseconds. A regular expression with exponential
 * backtracking may take hours for a few characters.
 */
const baseMilliseconds = 5000;
/** Timeout per character, in milliseconds. Allows a hundredth of the usual speed. */
const millisecondsPerCharacter = 0.1;

/**
 * Returns a clause for the message of the timeout error. The clause quotes a regular expression of a `tokenizer.json`,
 * because regular expressions may backtrack exponentially. Returns an empty string if the file contains no regular
 * expression.
 */
const patternsIn = (description: object): string => {
  const found: string[] = [];
  JSON.stringify(description, (key, value: unknown) => {
    if (key === "Regex" && typeof value === "string") found.push(value);
    return key === "vocab" || key === "merges" ? undefined : value;
  });
  return found.length === 0 ? "" : `a pattern may match in too many ways, such as ${excerpt(found[0])}; `;
};

type TokenizerClass = new (tokenizer: object, config: object) => TokenizerOfPackage;

/** Returns the path of a tokenizer file. @param location Path of the file or of its folder. */
export const tokenizerPath = (location: string): string =>
  isFolder(location) ? join(location, tokenizerFile) : location;

/** Reads the text of a tokenizer file. @throws DataError if the file cannot be read, or is not a tokenizer file. */
export const readTokenizerText = (path: string): string =>
  readText(path, `give a ${tokenizerFile}, or a folder that contains it`, "json");

const parseObject = (text: string, path: string): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>;
  } catch {
    // invalid JSON is reported below
  }
  throw new DataError(
    `${path} does not contain a JSON object, so it is not a ${tokenizerFile}; restore the file from another copy`,
  );
};

/**
 * Makes a decoder keep byte order marks, as Hugging Face's tokenizers do. Version 0.2 of the package drops byte order
 * marks.
 */
const keepByteOrderMarks = (decoder: DecoderOfPackage | null): void => {
  if (decoder?.text_decoder !== undefined) decoder.text_decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  decoder?.decoders?.forEach(keepByteOrderMarks);
};

/**
 * Whether decoding removes spaces before punctuation, as in transformers 5. Only WordPiece decoding removes these
 * spaces, because WordPiece tokens do not contain spaces. Byte-pair and unigram tokens contain the spaces of a text.
 */
const cleansUpSpaces = (tokenizer: Readonly<Record<string, unknown>>, config: Readonly<Record<string, unknown>>) =>
  (tokenizer["model"] as { readonly type?: unknown } | undefined)?.type === "WordPiece" &&
  config["clean_up_tokenization_spaces"] === true;

/**
 * Loads a Hugging Face tokenizer with package `@huggingface/tokenizers`: `tokenizer.json`, and, if present,
 * `tokenizer_config.json` next to it, which names the end-of-text token.
 *
 * @param location Path of the file or of its folder.
 * @param from File URL of the module from which the package is resolved: `import.meta.url`.
 * @throws DataError if the package is not installed, with the command that installs it, or if the file cannot be used.
 * @example const { encode } = loadTokenizer("checkpoints/llama", import.meta.url);
 */
export const loadTokenizer = (location: string, from: string): Tokenizer => {
  const path = tokenizerPath(location);
  const text = readTokenizerText(path);
  const configPath = join(dirname(path), configFile);
  const config = existsSync(configPath) ? parseObject(readTokenizerText(configPath), configPath) : {};
  const description = withSpecialTokens(parseObject(text, path), config);
  const fault = tokenIdFault(description);
  if (fault !== undefined) throw new DataError(`${path}: ${fault}; save it again with Hugging Face's tokenizers`);
  const { name: packageName } = readerPackages.tokenizers;
  /** Runs a function of the package with a timeout. @param fault Error message if the package throws. */
  const inTime = <Result>(size: number, what: string, work: () => Result, fault = `${path}: ${what} fails`): Result => {
    const milliseconds = baseMilliseconds + size * millisecondsPerCharacter;
    let done: { readonly result: Result } | undefined;
    try {
      done = withinTime(milliseconds, work);
    } catch (cause) {
      throw new DataError(
        `${fault} (${packageName}: ${(cause as Error).message}); save it again with Hugging Face's tokenizers`,
        { cause },
      );
    }
    if (done !== undefined) return done.result;
    throw new DataError(
      `${path}: ${what} took more than ${Math.round(milliseconds / 1000)} s; ${patternsIn(description)}use another tokenizer`,
    );
  };
  const { Tokenizer: TokenizerOfFile } = requirePackage(readerPackages.tokenizers, from) as {
    Tokenizer: TokenizerClass;
  };
  const { tokenizer, vocabulary } = inTime(
    text.length,
    "reading the file",
    () => {
      // `description` already contains the special tokens, and the package accepts only texts as
      // `additional_special_tokens`.
      const made = new TokenizerOfFile(description, { ...config, additional_special_tokens: [] });
      keepByteOrderMarks(made.decoder);
      let size = 0;
      for (const id of made.get_vocab(true).values()) size = Math.max(size, id + 1);
      return { tokenizer: made, vocabulary: size };
    },
    `${path} is not a tokenizer that ${packageName} can read`,
  );
  const end = contentOf(config["eos_token"]);
  const options = {
    skip_special_tokens: true,
    clean_up_tokenization_spaces: cleansUpSpaces(description, config),
  };
  const encodeNow = (text: string, withSpecial: boolean): Int32Array =>
    Int32Array.from(tokenizer.encode(text, { add_special_tokens: withSpecial }).ids);
  const encode = (text: string, withSpecial: boolean): Int32Array =>
    inTime(text.length, `encoding a text of ${text.length} characters`, () => encodeNow(text, withSpecial));
  return {
    vocabulary,
    encode: (text) => encode(text, false),
    encodeAll: (texts) => {
      const size = texts.reduce((sum, { length }) => sum + length, 0);
      return inTime(size, `encoding ${texts.length} texts of ${size} characters`, () =>
        texts.map((text) => encodeNow(text, false)),
      );
    },
    encodePrompt: (text) => encode(text, true),
    // The package cannot decode an empty list.
    decode: (tokens) =>
      tokens.length === 0
        ? ""
        : inTime(tokens.length, `decoding ${tokens.length} tokens`, () =>
            tokenizer.decode(Array.from(tokens), options),
          ),
    endOfText: end === undefined ? undefined : tokenizer.token_to_id(end),
  };
};
