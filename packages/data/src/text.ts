import { ArgumentError } from "@skein/tensor-core";
import { DataError } from "./errors.ts";
import { makeRecords, type Records } from "./records.ts";

/**
 * Windows of T + 1 bytes for a byte-level language model: fields `inputs` u8 [T] and `labels` u8 [T], the same bytes
 * one further. Windows follow each other without overlap of their targets, so one epoch predicts every byte but the
 * first once; a rest shorter than T is left out.
 *
 * @throws DataError when the text is shorter than one window.
 */
export const textRecords = (text: Uint8Array, windowLength: number): Records => {
  if (!Number.isInteger(windowLength) || windowLength < 1)
    throw new ArgumentError(`a window of ${windowLength} bytes is not usable; use an integer from 1`);
  const count = Math.floor((text.length - 1) / windowLength);
  if (count < 1)
    throw new DataError(
      `the text has ${text.length} bytes, but one window takes ${windowLength + 1}; use a longer text or a shorter window`,
    );
  const window = { bytes: text, strideBytes: windowLength, dtype: "u8", shape: [windowLength] } as const;
  return makeRecords(count, { inputs: { ...window, offsetBytes: 0 }, labels: { ...window, offsetBytes: 1 } });
};

/**
 * Cut a text in a training part and a validation part, the last `validFraction` of it. A cut, not a draw: neighbouring
 * windows are too alike.
 *
 * @param validFraction in (0, 1).
 */
export const splitText = (
  text: Uint8Array,
  validFraction: number,
): { readonly train: Uint8Array; readonly valid: Uint8Array } => {
  if (!(validFraction > 0 && validFraction < 1))
    throw new ArgumentError(
      `a validation fraction of ${validFraction} leaves one part empty; use a number between 0 and 1, such as 0.1`,
    );
  const cut = Math.floor(text.length * (1 - validFraction));
  return { train: text.subarray(0, cut), valid: text.subarray(cut) };
};
