import { ConfigError } from "@skein/cli/node";
import { decodeAfter } from "@skein/data";
import { type Backend, randomKey } from "@skein/tensor-core";
import { foldInKey, threefryWord } from "@skein/tensor-core/backend";
import { nextLogits } from "./next-logits.ts";
import { sampleToken, type Sampling } from "./sample-token.ts";
import type { TextModel } from "./text-model.ts";

/** Request to continue a text. */
export interface Generation extends Sampling {
  readonly prompt: string;
  /** Maximum number of tokens to generate. */
  readonly tokens: number;
  readonly seed: number;
  /** Number of independently sampled continuations. */
  readonly count: number;
  /** Text before whose first occurrence a continuation ends. Absent: no stop text. */
  readonly stop?: string | undefined;
  /** Called with each new part of continuation `index`. */
  readonly onText?: (text: string, index: number) => void;
}

/** Matches replacement characters at the end of a decoded text, which represent an incomplete UTF-8 character. */
const unfinished = /�+$/;

/**
 * Returns the part of a text that later tokens cannot change, without an incomplete character or a possible start of
 * the stop text at the end.
 */
const finalPart = (text: string, stop: string | undefined): string => {
  const whole = text.replace(unfinished, "");
  if (stop === undefined) return whole;
  const at = whole.indexOf(stop);
  if (at >= 0) return whole.slice(0, at);
  for (let length = Math.min(stop.length - 1, whole.length); length > 0; length--)
    if (stop.startsWith(whole.slice(-length))) return whole.slice(0, -length);
  return whole;
};

/**
 * Continues a text. Token i of continuation c is sampled with word i of a random stream that depends on the seed and c,
 * so that equal requests return equal texts, and a longer continuation starts with the same tokens.
 *
 * If a sequence is longer than the model's context, only the last tokens are used (sliding window).
 *
 * @returns the continuations, without the prompt.
 * @throws ConfigError if the prompt has no token, or if the tokenizer has more tokens than the model.
 */
export const generateText = async (
  text: TextModel,
  { prompt, tokens, seed, count, stop, onText, ...sampling }: Generation,
  backend: Backend,
): Promise<string[]> => {
  const { tokenizer, contextLength } = text;
  const promptTokens = Array.from(tokenizer.encodePrompt(prompt));
  if (promptTokens.length === 0 && tokenizer.endOfText !== undefined) promptTokens.push(tokenizer.endOfText);
  if (promptTokens.length === 0)
    throw new ConfigError(["--prompt: the prompt has no token; give at least one character"]);
  const logits = nextLogits(text, Math.min(contextLength, promptTokens.length + tokens), backend);
  try {
    const results: string[] = [];
    for (let index = 0; index < count; index++) {
      const key = foldInKey(randomKey(seed).data as Uint32Array, index);
      const added: number[] = [];
      let emitted = "";
      const emit = (next: string): void => {
        if (next.length > emitted.length) onText?.(next.slice(emitted.length), index);
        emitted = next;
      };
      while (added.length < tokens) {
        const scores = await logits.of([...promptTokens, ...added]);
        if (tokenizer.vocabulary > scores.length)
          throw new ConfigError([
            `the tokenizer has ${tokenizer.vocabulary} tokens, but the model has ${scores.length}; use the tokenizer that the model was trained with`,
          ]);
        const known = scores.subarray(0, tokenizer.vocabulary); // a model may have a larger vocabulary
        const token = sampleToken(known, sampling, threefryWord(key, added.length) / 2 ** 32);
        if (token === tokenizer.endOfText) break;
        added.push(token);
        const whole = decodeAfter(tokenizer, promptTokens, added);
        emit(finalPart(whole, stop));
        if (stop !== undefined && whole.includes(stop)) break;
      }
      const whole = decodeAfter(tokenizer, promptTokens, added);
      const end = stop === undefined ? -1 : whole.indexOf(stop);
      emit(end >= 0 ? whole.slice(0, end) : whole);
      results.push(emitted);
    }
    return results;
  } finally {
    logits.release();
  }
};
