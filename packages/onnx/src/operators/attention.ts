import type { Dim } from "../affine.ts";
import { type EmitInput, type Emitter, knownSize, needTypes, param } from "./emitter.ts";

/** Sizes of an attention that do not follow from the batch. */
interface Sizes {
  readonly queries: number;
  readonly keys: number;
}

/** Which keys a query sees, as names of bool values; absent if a query sees all keys. */
interface Visible {
  /** Keys that each entry of the batch has, [batch, 1, 1, keys]. Absent: all. */
  readonly there?: string;
  /** Keys that each query sees, [queries, keys] or [batch, 1, queries, keys]. Absent: those that are there. */
  readonly seen?: string;
}

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i);

/** Limits of the entries of the batch, i32 [2, batch]: numbers of keys, and positions of the first queries. */
const limitedBy = ({ node, writer }: EmitInput, limits: string, { queries, keys }: Sizes): Visible => {
  const row = (index: number): string => {
    const taken = writer.node("Slice", [limits, ...[[index], [index + 1], [0]].map((list) => writer.sizes(list))]);
    return writer.node("Reshape", [taken, writer.sizes([-1, 1, 1, 1])], { allowzero: 0 });
  };
  const there = writer.node("Less", [writer.numbers("i32", [1, 1, 1, keys], range(keys)), row(0)]);
  if (!param<boolean>(node, "causal")) return { there };
  // How far each key is ahead of each query: a sum of a position and a start could overflow.
  const ahead = range(queries * keys).map((i) => (i % keys) - Math.floor(i / keys));
  const isBehind = writer.node("LessOrEqual", [writer.numbers("i32", [1, 1, queries, keys], ahead), row(1)]);
  return { there, seen: writer.node("And", [there, isBehind]) };
};

/** Query i of a causal attention sees the keys up to the position that ends with the last one. */
const causalOf = ({ writer }: EmitInput, { queries, keys }: Sizes): Visible => {
  const seen = range(queries * keys).map((i) => ((i % keys) - Math.floor(i / keys) > keys - queries ? 0 : 1));
  return { seen: writer.numbers("bool", [queries, keys], seen) };
};

/**
 * `softmax(scale · q kᵀ) v` over the keys that a query sees. A query that sees no key gives zeros. Values of keys that
 * are not there do not contribute, even if they hold NaN. Heads of keys are repeated if they serve several of queries.
 */
export const attention: Emitter = (input) => {
  const { node, inputs, specs, writer } = input;
  needTypes(node, specs.slice(0, 3), ["f32"]);
  const [batch] = specs[0]!.shape as readonly [Dim];
  const [numHeads, queries, width] = [-3, -2, -1].map((dim) => knownSize(node, specs[0]!, dim)) as [
    number,
    number,
    number,
  ];
  const [numKeyHeads, keys] = [knownSize(node, specs[1]!, -3), knownSize(node, specs[1]!, -2)];
  const zero = writer.scalar("f32", 0);
  if (keys === 0) return [writer.node("Expand", [zero, writer.sizes(specs[0]!.shape)]), undefined];
  const [q, k, v, limits] = inputs as readonly [string, string, string, string?];
  const visible = ((): Visible => {
    if (limits !== undefined) return limitedBy(input, limits, { queries, keys });
    return param<boolean>(node, "causal") ? causalOf(input, { queries, keys }) : {};
  })();
  const seen = visible.seen ?? visible.there;

  const forAll = (name: string): string => {
    if (numKeyHeads === numHeads) return name;
    const apart = writer.node("Unsqueeze", [name, writer.sizes([2])]);
    const shape = [batch, numKeyHeads, numHeads / numKeyHeads, keys, width];
    const repeated = writer.node("Expand", [apart, writer.sizes(shape)]);
    return writer.node("Reshape", [repeated, writer.sizes([batch, numHeads, keys, width])], { allowzero: 1 });
  };
  const values = (): string => {
    if (visible.there === undefined) return v;
    const rows = writer.node("Transpose", [visible.there], { perm: [0, 1, 3, 2] });
    return writer.node("Where", [rows, v, zero]);
  };
  const transposed = writer.node("Transpose", [forAll(k)], { perm: [0, 1, 3, 2] });
  const scale = writer.scalar("f32", param<number>(node, "scale"));
  const scores = writer.node("Mul", [writer.node("MatMul", [q, transposed]), scale]);
  const softmax = (of: string): string => writer.node("Softmax", [of], { axis: -1 });
  const weights = ((): string => {
    if (seen === undefined) return softmax(scores);
    const hidden = writer.node("Where", [seen, scores, writer.scalar("f32", -Infinity)]);
    // The softmax of a query that sees no key is NaN.
    return writer.node("Where", [seen, softmax(hidden), zero]);
  })();
  return [writer.node("MatMul", [weights, forAll(values())]), undefined];
};
