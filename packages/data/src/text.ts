import { ArgumentError } from "@skein/tensor-core";
import { DataError } from "./errors.ts";
import { byteRecords, type Records } from "./records.ts";

/**
 * Makes windows of T + 1 bytes or tokens for a language model. Fields: `inputs` [T], and `labels` [T], which is
 * `inputs` shifted by one. Dtype: u8 for bytes, i32 for tokens. The labels of windows do not overlap, so each token
 * except the first is predicted once per epoch. A remainder shorter than T is dropped.
 *
 * @param name Name of the text in errors.
 * @throws DataError if the text is shorter than one window.
 * @example
 * ```ts
 * const records = textRecords(new TextEncoder().encode("Call me Ishmael."), 4);
 * const batch = gatherBatch(records, [0]);
 * console.log(batch["inputs"]!.toNumbers(), batch["labels"]!.toNumbers()); // [67, 97, 108, 108] [97, 108, 108, 32]
 * ```
 */
export const textRecords = (text: Uint8Array | Int32Array, windowLength: number, name = "the text"): Records => {
  const isBytes = text instanceof Uint8Array;
  const units = isBytes ? "bytes" : "tokens";
  if (!Number.isInteger(windowLength) || windowLength < 1)
    throw new ArgumentError(`a window of ${windowLength} ${units} is not usable; use an integer from 1`);
  const count = Math.floor((text.length - 1) / windowLength);
  if (count < 1)
    throw new DataError(
      `${name} has ${text.length} ${units}, but one window needs ${windowLength + 1}; use a longer text or a shorter window`,
    );
  const each = text.BYTES_PER_ELEMENT;
  const window = {
    bytes: isBytes ? text : new Uint8Array(text.buffer, text.byteOffset, text.byteLength),
    strideBytes: windowLength * each,
    dtype: isBytes ? "u8" : "i32",
    shape: [windowLength],
  } as const;
  return byteRecords(count, { inputs: { ...window, offsetBytes: 0 }, labels: { ...window, offsetBytes: each } });
};

/**
 * Splits a text into a training part and a validation part, the last `validFraction` of the text. The split is not
 * random, because neighboring windows are similar.
 *
 * @param validFraction Fraction of the text, in (0, 1).
 * @example
 * ```ts
 * const { train, valid } = splitText(new TextEncoder().encode("Call me Ishmael."), 0.25);
 * console.log(train.length, valid.length); // 12 4
 * ```
 */
export const splitText = <Text extends Uint8Array | Int32Array>(
  text: Text,
  validFraction: number,
): { readonly train: Text; readonly valid: Text } => {
  if (!(validFraction > 0 && validFraction < 1))
    throw new ArgumentError(
      `a validation fraction of ${validFraction} leaves one part empty; use a number between 0 and 1, such as 0.1`,
    );
  const cut = Math.floor(text.length * (1 - validFraction));
  return { train: text.subarray(0, cut) as Text, valid: text.subarray(cut) as Text };
};
