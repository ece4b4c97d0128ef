import {
  ArgumentError,
  byteLength,
  concat,
  flattenTree,
  foldIn,
  mapTree,
  split,
  type Tensor,
  type TensorSpec,
  trace,
  type Traced,
  unflattenTree,
} from "@skein/tensor-core";
import type { EncodeContext } from "./context.ts";
import { widestScope } from "./aggregator.ts";
import { type Compressor, defineCompressor } from "./compressor.ts";

/** Payload of the outer compressor of a chain, in which the payload of the inner compressor replaces `values`. */
export type ChainPayload<Outer, Inner> = Omit<Outer, "values"> & { readonly values: Inner };

/** States of the outer and the inner compressor of a chain. */
export interface ChainState<Outer, Inner> {
  readonly outer: Outer;
  readonly inner: Inner;
}

// With an equal key, both compressors would draw equal numbers.
const innerContext = (context?: EncodeContext): EncodeContext | undefined =>
  context?.key === undefined ? context : { ...context, key: foldIn(context.key, 1) };

/**
 * Returns the specs (dtype and shape) of a payload's leaves. Traces the encoder in a separate graph, because only the
 * encoder determines the shapes of its payload.
 */
const payloadSpecs = <State, Payload>(
  outer: Compressor<State, Payload>,
  gradient: TensorSpec,
): ChainPayload<Payload, TensorSpec> => {
  const context = {
    key: { dtype: "u32", shape: [2] },
    rank: { dtype: "i32", shape: [] },
    step: { dtype: "u32", shape: [] },
  } as const;
  const { graph, outputs }: Traced = trace(
    (g: Tensor, given: EncodeContext) => outer.encode(g, outer.init(g), given).payload,
    [gradient, context] as never,
  );
  return unflattenTree(
    outputs,
    graph.outputs.map(({ node, output }) => graph.nodes[node]!.specs[output]!),
  );
};

/**
 * Compresses the `values` of the outer compressor's payload with the inner compressor. The other leaves of the outer
 * payload are sent unchanged.
 *
 * Lossless if both compressors are lossless; biased if one of the compressors is biased. Values that the inner
 * compressor changes are also changed in `sent`, so error feedback around the chain adds the inner compressor's error
 * to the residual.
 *
 * @throws ArgumentError if the payload length of a compressor is known only at run time, or the payload of the outer
 * compressor has no f32 `values`.
 * Cost: the outer payload's bytes without its values, plus the inner payload's bytes for these values.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(chainCompressors(topKCompressor({ k: 2 }), eightBitCompressor()));
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -127, 64, 2]));
 * console.log(sent.toNumbers()); // [0, -127, 64, 0]
 * ```
 */
export const chainCompressors = <OuterState, Outer extends { readonly values: Tensor }, InnerState, Inner>(
  outer: Compressor<OuterState, Outer>,
  inner: Compressor<InnerState, Inner>,
): Compressor<ChainState<OuterState, InnerState>, ChainPayload<Outer, Inner>> => {
  for (const one of [outer, inner]) {
    if (one.rows !== undefined)
      throw new ArgumentError(
        `chainCompressors: the payload length of ${one.name ?? "a compressor"} is known only at run time, so its leaves cannot be compressed further; chain compressors of fixed length, such as top-k`,
      );
  }
  const values = (gradient: TensorSpec): TensorSpec => {
    const spec = payloadSpecs(outer, gradient).values;
    if (spec === undefined || spec.dtype !== "f32")
      throw new ArgumentError(
        `chainCompressors: the payload of ${outer.name ?? "the outer compressor"} has ${spec === undefined ? "no values" : `${spec.dtype} values`}, but the inner compressor needs f32 values; use an outer compressor that sends f32 values, such as top-k`,
      );
    return spec;
  };
  const restore = (payload: ChainPayload<Outer, Inner>, decoded: Tensor): Outer =>
    ({ ...payload, values: decoded }) as unknown as Outer;
  const { decodeSum } = outer;
  return defineCompressor<ChainState<OuterState, InnerState>, ChainPayload<Outer, Inner>>({
    ...(outer.name !== undefined && inner.name !== undefined && { name: `${outer.name}, then ${inner.name}` }),
    aggregation: outer.aggregation === "sum" && inner.aggregation === "sum" ? "sum" : "gather",
    biased: outer.biased || inner.biased,
    scope: widestScope([outer.scope, inner.scope]),
    init: (gradient) => ({ outer: outer.init(gradient), inner: inner.init(values(gradient)) }),
    encode: (gradient, state, context) => {
      const first = outer.encode(gradient, state.outer, context);
      const second = inner.encode(first.payload.values, state.inner, innerContext(context));
      return {
        payload: { ...first.payload, values: second.payload },
        state: { outer: first.state, inner: second.state },
      };
    },
    decode: (payload, gradient, context) =>
      outer.decode(
        restore(payload, inner.decode(payload.values, values(gradient), innerContext(context))),
        gradient,
        context,
      ),
    // Decodes the values of each rank separately, but scatters all values in one pass.
    ...(decodeSum && {
      decodeSum: (payloads, numRanks, gradient, context?: EncodeContext) => {
        const spec = values(gradient);
        const { leaves, structure } = flattenTree<Tensor>(payloads.values);
        const parts = leaves.map((leaf) => split(leaf, numRanks));
        const decoded = Array.from({ length: numRanks }, (_, rank) => {
          const own = parts.map((part) => part[rank]!);
          return inner.decode(unflattenTree<Inner>(structure, own), spec, innerContext(context));
        });
        return decodeSum.call(outer, restore(payloads, concat(decoded)), numRanks, gradient);
      },
    }),
    payloadBytes: (gradient) => {
      const { values: _, ...rest } = payloadSpecs(outer, gradient);
      let bytes = inner.payloadBytes(values(gradient));
      mapTree(rest, (spec: TensorSpec) => (bytes += byteLength(spec)));
      return bytes;
    },
  });
};
