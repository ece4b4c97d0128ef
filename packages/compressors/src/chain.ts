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

/** The payload of `Outer`, whose values the inner compressor has replaced by `Inner`. */
export type ChainPayload<Outer, Inner> = Omit<Outer, "values"> & { readonly values: Inner };

/** What two chained compressors keep, each its own. */
export interface ChainState<Outer, Inner> {
  readonly outer: Outer;
  readonly inner: Inner;
}

// Both would draw the same numbers from one key.
const innerContext = (context?: EncodeContext): EncodeContext | undefined =>
  context?.key === undefined ? context : { ...context, key: foldIn(context.key, 1) };

/**
 * Specs of a payload, by path. Encoding is traced on the side, because a payload's shapes are known to its encoder
 * alone.
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
 * Compress what a compressor sends: the `values` of the outer payload go through the inner one, whatever else is in it
 * travels as it is.
 *
 * Lossless where both are; biased where one is. What the inner one loses is missing in what was sent, so error feedback
 * around both keeps it.
 *
 * @throws ArgumentError for compressors whose payload's length is known at run time only; and for an outer one whose
 * payload has no `values`.
 * Cost: the outer payload's bytes without those of its values, and the inner payload's bytes for as many values.
 * @example withErrorFeedback(chainCompressors(topKCompressor({ density: 0.01 }), eightBitCompressor())) // 4 bytes of
 * position, 1 of value
 */
export const chainCompressors = <OuterState, Outer extends { readonly values: Tensor }, InnerState, Inner>(
  outer: Compressor<OuterState, Outer>,
  inner: Compressor<InnerState, Inner>,
): Compressor<ChainState<OuterState, InnerState>, ChainPayload<Outer, Inner>> => {
  for (const one of [outer, inner]) {
    if (one.rows !== undefined)
      throw new ArgumentError(
        `chainCompressors: the length of the payload of ${one.name ?? "a compressor"} is known at run time only, so its leaves cannot change; chain compressors of fixed length, such as top-k`,
      );
  }
  const values = (gradient: TensorSpec): TensorSpec => {
    const spec = payloadSpecs(outer, gradient).values;
    if (spec === undefined || spec.dtype !== "f32")
      throw new ArgumentError(
        `chainCompressors: the payload of ${outer.name ?? "the outer compressor"} has ${spec === undefined ? "no values" : `${spec.dtype} values`}, but f32 values are compressed further; give a compressor that sends some of them as they are`,
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
    // The values of each rank are decoded for themselves, but scattered in one pass.
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
