import {
  add,
  axisIndex,
  byteLength,
  concat,
  elementCount,
  flattenTree,
  NdArray,
  type Tensor,
  unflattenTree,
} from "@skein/tensor-core";
import fc from "fast-check";
import type { Aggregator, Compressor } from "../../src/index.ts";
import { runWorld } from "../world.ts";
import { drawn, expectNear, greatest, holds, type Law } from "./law.ts";

const isCompressor = (aggregator: Aggregator): aggregator is Compressor => "encode" in aggregator;

/** Joins trees of the same structure to one tree: applies `join` to the corresponding leaves of all trees. */
const joined = (trees: readonly unknown[], join: (leaves: Tensor[]) => Tensor): unknown => {
  const flat = trees.map((tree) => flattenTree<Tensor>(tree));
  return unflattenTree(
    flat[0]!.structure,
    flat[0]!.leaves.map((_, i) => join(flat.map(({ leaves }) => leaves[i]!))),
  );
};

const key = NdArray.from([3, 4], [2], "u32");

const jointly: Law = {
  name: "payloads of several ranks decode to the sum of each",
  appliesTo: ({ aggregator }) => isCompressor(aggregator),
  check: (row) => {
    const compressor = row.aggregator as Compressor;
    holds(drawn({ ranks: [1, 2, 4] }), ({ bucket, numRanks, gradients }) => {
      const [both] = runWorld(
        (keyOfStep: Tensor, own: readonly Tensor[]) => {
          const context = { key: keyOfStep, rank: axisIndex("data") };
          const payloads = own.map((gradient) => compressor.encode(gradient, compressor.init(bucket), context).payload);
          const each = payloads
            .map((payload) => compressor.decode(payload, bucket, context))
            .reduce((sum, one) => add(sum, one));
          if (compressor.aggregation === "sum") {
            const total = joined(payloads, (leaves) => leaves.reduce((sum, leaf) => add(sum, leaf)));
            return { each, joint: compressor.decode(total, bucket, context) };
          }
          return { each, joint: compressor.decodeSum?.(joined(payloads, concat), numRanks, bucket) ?? each };
        },
        [[key, gradients.map((gradient) => NdArray.from(gradient))]] as never,
      ) as unknown as { each: NdArray; joint: NdArray }[];
      const tolerance = numRanks * 2 ** -23 * Math.max(1, greatest(...gradients));
      expectNear(both!.joint.toNumbers(), both!.each.toNumbers(), tolerance, "the joint sum");
    });
  },
};

const declared: Law = {
  name: "a payload has the declared bytes for any shape, and decodes to that shape",
  appliesTo: ({ aggregator }) => isCompressor(aggregator),
  check: (row) => {
    const compressor = row.aggregator as Compressor;
    const shapes = fc.constantFrom([], [0], [1], [5], [33], [3, 4], [300], [2, 0, 3], [2, 3, 50]);
    holds(shapes, (shape) => {
      const gradient = NdArray.from(
        Array.from({ length: elementCount(shape) }, (_, i) => Math.sin(i + 1)),
        shape,
      );
      const [result] = runWorld(
        (keyOfStep: Tensor, own: Tensor) => {
          const context = { key: keyOfStep, rank: axisIndex("data") };
          const { payload } = compressor.encode(own, compressor.init(own), context);
          return { payload: flattenTree<Tensor>(payload).leaves, decoded: compressor.decode(payload, own, context) };
        },
        [[key, gradient]] as never,
      ) as unknown as { payload: NdArray[]; decoded: NdArray }[];
      const { payload, decoded } = result!;
      const sent = payload.reduce((total, leaf) => total + byteLength(leaf), 0);
      const expected = compressor.payloadBytes(gradient);
      if (sent !== expected)
        throw new Error(`the payload of [${shape}] has ${sent} bytes, not ${expected} as declared`);
      if (decoded.dtype !== "f32" || String(decoded.shape) !== String(shape))
        throw new Error(`the payload of [${shape}] decodes to ${decoded.dtype} of [${decoded.shape}]`);
      if (compressor.aggregation === "gather" && payload.some((leaf) => leaf.shape.length === 0))
        throw new Error("a gathered payload has a leaf without a dimension");
    });
  },
};

export const payloadLaws: readonly Law[] = [jointly, declared];
