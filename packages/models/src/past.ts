// Shapes: B batch, T new positions, S capacity in positions, G heads of keys and values, K width of a head.
import { add, arange, broadcastTo, reshape, type Tensor } from "@skein/tensor-core";

/**
 * Keys and values of one attention layer, [B, G, S, K] each. Positions beyond the valid length hold arbitrary values.
 */
export interface KeyValues {
  readonly keys: Tensor;
  readonly values: Tensor;
}

/** Keys and values of the tokens before those that a causal model is applied to. */
export interface Past {
  /** Number of earlier positions, i32 []. Absent: 0. */
  readonly length?: Tensor;
  /**
   * Called by each attention layer, in order, with the keys and values of the new positions, [B, G, T, K]; returns the
   * keys and values to attend to, [B, G, S, K].
   */
  extend(own: KeyValues): KeyValues;
}

/** Returns the positions of the tokens, i32 [T]; undefined at the beginning of a sequence. */
export const positionsOf = (past: Past | undefined, count: number): Tensor | undefined =>
  past?.length === undefined ? undefined : add(arange(count), past.length);

/** Returns options of causal `attention` for queries after a cached prefix, so that later keys are masked. */
export const queryOptions = ({ length }: Past, batch: number): { readonly queryStarts?: Tensor } =>
  length === undefined ? {} : { queryStarts: broadcastTo(reshape(length, [1]), [batch]) };
