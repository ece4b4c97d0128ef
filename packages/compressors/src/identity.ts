import { byteLength, reshape, type Tensor } from "@skein/tensor-core";
import type { Compressor } from "./compressor.ts";

export interface DensePayload {
  readonly values: Tensor;
}

/** Send the gradient as it is, by all-reduce: dense synchronous SGD. 4n bytes. */
export const identityCompressor = (): Compressor<[], DensePayload> => ({
  name: "identity",
  aggregation: "sum",
  biased: false,
  init: () => [],
  encode: (gradient, state) => ({ payload: { values: gradient }, state }),
  decode: ({ values }, { shape }) => reshape(values, shape),
  payloadBytes: (gradient) => byteLength(gradient),
});
