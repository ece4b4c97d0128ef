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

/** Time for a text, beside that of its characters. A pattern that backtracks without end takes hours of few letters. */
const baseMilliseconds = 5000;
/** A hundredth of the usual speed. */
const millisecondsPerCharacter = 0.1;

/** The regular expressions of a `tokenizer.json`, one of which may backtrack without end. */
const patternsIn = (description: object): string => {
  const found: string[] = [];
  JSON.stringify(description, (key, value: unknown) => {
    if (key === "Regex" && typeof value === "string") found.push(value);
    return key === "vocab" || key === "merges" ? undefined : value;
  });
  return found.length === 0 ? "" : `a pattern may match in too many ways, such as ${excerpt(found[0])}; `;
};

type TokenizerClass = new (tokenizer: object, config: object) => TokenizerOfPackage;

/** The path of a tokenizer's file. @param place the file, or its folder. */
export const tokenizerPath = (place: string): string => (isFolder(place) ? join(place, tokenizerFile) : place);

/** The text of a tokenizer's file. @throws DataError if it cannot be read, or is another file. */
export const readTokenizerText = (path: string): string =>
  readText(path, `name a ${tokenizerFile}, or a folder with one`, "json");

const parseObject = (text: string, path: string): Readonly<Record<string, unknown>> => {
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
  const path = tokenizerPath(place);
  const text = readTokenizerText(path);
  const beside = join(dirname(path), configFile);
  const config = existsSync(beside) ? parseObject(readTokenizerText(beside), beside) : {};
  const description = withSpecialTokens(parseObject(text, path), config);
  const fault = tokenIdFault(description);
  if (fault !== undefined) throw new DataError(`${path}: ${fault}; save it again with Hugging Face's tokenizers`);
  const { name: packageName } = readerPackages.tokenizers;
  /** Does work of the package. @param fault what to say if the package throws. */
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
      `${path}: ${what} takes more than ${Math.round(milliseconds / 1000)} s; ${patternsIn(description)}use another tokenizer`,
    );
  };
  const { Tokenizer: TokenizerOfFile } = requirePackage(readerPackages.tokenizers, from) as {
    Tokenizer: TokenizerClass;
  };
  const { tokenizer, vocabulary } = inTime(
    text.length,
    "reading it",
    () => {
      // The description has these tokens now; the package takes them as a list of texts only.
      const made = new TokenizerOfFile(description, { ...config, additional_special_tokens: [] });
      keepByteOrderMarks(made.decoder);
      let most = 0;
      for (const id of made.get_vocab(true).values()) most = Math.max(most, id + 1);
      return { tokenizer: made, vocabulary: most };
    },
    `${path} is no tokenizer that ${packageName} reads`,
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
    // The package decodes no empty list.
    decode: (tokens) =>
      tokens.length === 0
        ? ""
        : inTime(tokens.length, `decoding ${tokens.length} tokens`, () =>
            tokenizer.decode(Array.from(tokens), options),
          ),
    endOfText: end === undefined ? undefined : tokenizer.token_to_id(end),
  };
};
