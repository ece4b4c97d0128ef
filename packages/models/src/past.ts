// Shapes: B batch, T new positions, S capacity in positions, G key/value heads, K head width.
import { add, arange, broadcastTo, reshape, type Tensor } from "@skein/tensor-core";

/**
 * Keys and values of one attention layer, [B, G, S, K] each. Positions beyond the valid length hold arbitrary values.
 */
export interface KeyValues {
  readonly keys: Tensor;
  readonly values: Tensor;
}

/** Cached keys and values of tokens before the inputs of a causal model. */
export interface Past {
  /** Number of earlier positions, i32 []. Absent: no earlier positions. */
  readonly length?: Tensor;
  /**
   * Appends the keys and values of the new positions, [B, G, T, K], and returns the keys and values to attend to, [B,
   * G, S, K]. Each attention layer calls this function, in the order of the layers.
   */
  extend(own: KeyValues): KeyValues;
}

/** Returns the positions of the new tokens, i32 [T]; undefined at the start of a sequence. */
export const positionsOf = (past: Past | undefined, count: number): Tensor | undefined =>
  past?.length === undefined ? undefined : add(arange(count), past.length);

/**
 * Returns the options of causal `attention` for queries after a cached prefix. `queryStarts` [B] is the position of the
 * first query, so that keys after each query are masked.
 */
export const queryOptions = ({ length }: Past, batch: number): { readonly queryStarts?: Tensor } =>
  length === undefined ? {} : { queryStarts: broadcastTo(reshape(length, [1]), [batch]) };
