// Shapes: B batch, T new positions, S positions that there is room for, G heads of keys and values, K width of a head.
import { add, arange, broadcastTo, reshape, type Tensor } from "@skein/tensor-core";

/** Keys and values of one layer of attention, [B, G, S, K] each; behind those that are there they hold anything. */
export interface KeyValues {
  readonly keys: Tensor;
  readonly values: Tensor;
}

/** What a causal model has seen before the tokens that it is applied to. */
export interface Past {
  /** i32 []: how many positions. Absent: none. */
  readonly length?: Tensor;
  /**
   * Called by each layer of attention, in their order: keys and values of the new positions, [B, G, T, K], go in, and
   * those to attend to come out, [B, G, S, K].
   */
  extend(own: KeyValues): KeyValues;
}

/** i32 [T]: where the tokens stand that a model is applied to; undefined where they begin a sequence. */
export const positionsOf = (past: Past | undefined, count: number): Tensor | undefined =>
  past?.length === undefined ? undefined : add(arange(count), past.length);

/** Options of causal `attention` for queries that come behind a past: keys after them are not seen. */
export const behind = ({ length }: Past, batch: number): { readonly queryStarts?: Tensor } =>
  length === undefined ? {} : { queryStarts: broadcastTo(reshape(length, [1]), [batch]) };
