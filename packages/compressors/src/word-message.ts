import { bitcast, concat, flatten, reshape, split, type Tensor, type TensorSpec } from "@skein/tensor-core";
import { lengthOf } from "./bucket.ts";

/**
 * Concatenates tensors of 4-byte elements (f32, i32, u32) to one tensor u32 `[m]`, so that the tensors are sent in one
 * message.
 */
export const joinWords = (parts: readonly Tensor[]): Tensor =>
  concat(parts.map((part) => bitcast(flatten(part), "u32")));

/** Splits a message of words into tensors with the given specs. Inverse of `joinWords`. */
export const cutWords = (words: Tensor, specs: readonly TensorSpec[]): Tensor[] =>
  split(words, specs.map(lengthOf)).map((part, i) => reshape(bitcast(part, specs[i]!.dtype), specs[i]!.shape));
