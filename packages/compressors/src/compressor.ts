import type { Tensor, TensorSpec } from "@skein/tensor-core";

/** What an encoder may draw on beside gradient and state. */
export interface EncodeContext {
  /** u32[2], fresh every step and bucket, equal on all ranks. Fold in `rank` for randomness of one's own. */
  readonly key?: Tensor;
  /** i32 scalar: position of this rank among those that exchange. Given when `key` is. */
  readonly rank?: Tensor;
  /** i32 scalar, 0 at the first step. */
  readonly step?: Tensor;
}

export interface Encoded<State, Payload> {
  /** Tree of tensors; all of it travels, nothing else does. */
  readonly payload: Payload;
  readonly state: State;
}

/**
 * A gradient codec: traced functions and declared facts. It neither communicates nor keeps anything; what it must
 * remember is in `State`. `exchange` carries it, `withErrorFeedback` wraps it, and nobody asks for its name.
 *
 * The methods are methods (not function properties) so that compressors of different states fit one `Compressor`.
 */
export interface Compressor<State = unknown, Payload = unknown> {
  /** For reports only. */
  readonly name?: string;
  /**
   * How payloads of several ranks become one: `sum` when decoding is linear, so that an all-reduce may add the payloads
   * first; `gather` when each must be decoded. Leaves of a gathered payload have at least one dimension.
   */
  readonly aggregation: "sum" | "gather";
  /** Whether the expectation of `decode(encode(g))` differs from `g`, so that error feedback is needed to converge. */
  readonly biased: boolean;
  /** State for a gradient of this spec; traced. */
  init(gradient: TensorSpec): State;
  /** Compress; f32 of any shape. */
  encode(gradient: Tensor, state: State, context?: EncodeContext): Encoded<State, Payload>;
  /** The approximate gradient that a payload stands for. */
  decode(payload: Payload, gradient: TensorSpec): Tensor;
  /**
   * Sum of the gradients of `numRanks` payloads, given leaf by leaf one after another along dimension 0. Only where it
   * can be done cheaper than by decoding one by one, which is the default.
   */
  decodeSum?(payloads: Payload, numRanks: number, gradient: TensorSpec): Tensor;
  /** Exact bytes of a payload. */
  payloadBytes(gradient: TensorSpec): number;
}
