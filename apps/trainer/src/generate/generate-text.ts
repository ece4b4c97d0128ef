import { decodeAfter } from "@skein/data";
import { type Backend, randomKey } from "@skein/tensor-core";
import { foldInKey, threefryWord } from "@skein/tensor-core/backend";
import { ConfigError } from "../errors.ts";
import { nextLogits } from "./next-logits.ts";
import { sampleToken, type Sampling } from "./sample-token.ts";
import type { TextModel } from "./text-model.ts";

/** What is asked of a model. */
export interface Generation extends Sampling {
  readonly prompt: string;
  /** Most tokens to add. */
  readonly tokens: number;
  readonly seed: number;
  /** How many continuations, each drawn by itself. */
  readonly count: number;
  /** Text before which a continuation ends. */
  readonly stop?: string | undefined;
  /** Called with what is new of continuation `index` as it comes. */
  readonly onText?: (text: string, index: number) => void;
}

/** Bytes of a character that is not complete yet decode so. */
const unfinished = /�+$/;

/** What of a text is sure: the start of a stop, or of a character, may go on. */
const settled = (text: string, stop: string | undefined): string => {
  const whole = text.replace(unfinished, "");
  if (stop === undefined) return whole;
  const at = whole.indexOf(stop);
  if (at >= 0) return whole.slice(0, at);
  for (let length = Math.min(stop.length - 1, whole.length); length > 0; length--)
    if (stop.startsWith(whole.slice(-length))) return whole.slice(0, -length);
  return whole;
};

/**
 * Continue a text. Token i of continuation c is drawn with word i of a stream of its own under the seed, so the same
 * asked again gives the same, and more tokens begin with the same ones.
 *
 * Sequences longer than the model's context slide through it.
 *
 * @returns the continuations, without the prompt.
 * @throws ConfigError for a prompt without a token, or a tokenizer that has more tokens than the model.
 */
export const generateText = async (
  text: TextModel,
  { prompt, tokens, seed, count, stop, onText, ...sampling }: Generation,
  backend: Backend,
): Promise<string[]> => {
  const { tokenizer, contextLength } = text;
  const begun = Array.from(tokenizer.encodePrompt(prompt));
  if (begun.length === 0 && tokenizer.endOfText !== undefined) begun.push(tokenizer.endOfText);
  if (begun.length === 0)
    throw new ConfigError(["--prompt: it has no token to go on from; give a text of one character at least"]);
  const logits = nextLogits(text, Math.min(contextLength, begun.length + tokens), backend);
  try {
    const results: string[] = [];
    for (let index = 0; index < count; index++) {
      const key = foldInKey(randomKey(seed).data as Uint32Array, index);
      const added: number[] = [];
      let told = "";
      const tell = (next: string): void => {
        if (next.length > told.length) onText?.(next.slice(told.length), index);
        told = next;
      };
      while (added.length < tokens) {
        const scores = await logits.of([...begun, ...added]);
        if (tokenizer.vocabulary > scores.length)
          throw new ConfigError([
            `the tokenizer has ${tokenizer.vocabulary} tokens, but the model knows ${scores.length}; use the one that it was trained with`,
          ]);
        const known = scores.subarray(0, tokenizer.vocabulary); // some models have room for more
        const token = sampleToken(known, sampling, threefryWord(key, added.length) / 2 ** 32);
        if (token === tokenizer.endOfText) break;
        added.push(token);
        const whole = decodeAfter(tokenizer, begun, added);
        tell(settled(whole, stop));
        if (stop !== undefined && whole.includes(stop)) break;
      }
      const whole = decodeAfter(tokenizer, begun, added);
      const end = stop === undefined ? -1 : whole.indexOf(stop);
      tell(end >= 0 ? whole.slice(0, end) : whole);
      results.push(told);
    }
    return results;
  } finally {
    logits.release();
  }
};
