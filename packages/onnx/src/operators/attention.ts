import type { Dim } from "../affine.ts";
import { type EmitInput, type Emitter, knownSize, requireTypes, param } from "./emitter.ts";

/** Sizes of an attention operator that do not depend on the batch size. */
interface Sizes {
  readonly queries: number;
  readonly keys: number;
}

/** Names of bool masks that mark the visible keys. Absent masks: every query sees all keys. */
interface Visible {
  /** Name of the mask of valid keys for each sequence of the batch, [batch, 1, 1, keys]. Absent: all keys are valid. */
  readonly valid?: string;
  /**
   * Name of the mask of the keys that each query sees, [queries, keys] or [batch, 1, queries, keys]. Absent: each query
   * sees all valid keys.
   */
  readonly visible?: string;
}

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i);

/**
 * Returns masks computed from two limits per sequence of the batch, i32 [2, batch]: the number of valid keys, and the
 * position of the first query.
 */
const limitedBy = ({ node, writer }: EmitInput, limits: string, { queries, keys }: Sizes): Visible => {
  const row = (index: number): string => {
    const taken = writer.node("Slice", [limits, ...[[index], [index + 1], [0]].map((list) => writer.sizes(list))]);
    return writer.node("Reshape", [taken, writer.sizes([-1, 1, 1, 1])], { allowzero: 0 });
  };
  const valid = writer.node("Less", [writer.numbers("i32", [1, 1, 1, keys], range(keys)), row(0)]);
  if (!param<boolean>(node, "causal")) return { valid };
  // Key index minus query index. The difference is compared with the position of the first query, because adding that
  // position to the indices could overflow.
  const ahead = range(queries * keys).map((i) => (i % keys) - Math.floor(i / keys));
  const isBehind = writer.node("LessOrEqual", [writer.numbers("i32", [1, 1, queries, keys], ahead), row(1)]);
  return { valid, visible: writer.node("And", [valid, isBehind]) };
};

/**
 * Returns the mask of causal attention: the last query sees all keys, and each other query sees one key fewer than the
 * next query.
 */
const causalOf = ({ writer }: EmitInput, { queries, keys }: Sizes): Visible => {
  const visible = range(queries * keys).map((i) => ((i % keys) - Math.floor(i / keys) > keys - queries ? 0 : 1));
  return { visible: writer.numbers("bool", [queries, keys], visible) };
};

/**
 * Computes `softmax(scale · q kᵀ) v` over the visible keys. The result of a query without visible keys is 0. Values of
 * invalid keys do not contribute, even if they contain NaN. Key heads are repeated if they serve several query heads.
 */
export const attention: Emitter = (input) => {
  const { node, inputs, specs, writer } = input;
  requireTypes(node, specs.slice(0, 3), ["f32"]);
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
  const masks = ((): Visible => {
    if (limits !== undefined) return limitedBy(input, limits, { queries, keys });
    return param<boolean>(node, "causal") ? causalOf(input, { queries, keys }) : {};
  })();
  const visible = masks.visible ?? masks.valid;

  const forAll = (name: string): string => {
    if (numKeyHeads === numHeads) return name;
    const unsqueezed = writer.node("Unsqueeze", [name, writer.sizes([2])]);
    const shape = [batch, numKeyHeads, numHeads / numKeyHeads, keys, width];
    const repeated = writer.node("Expand", [unsqueezed, writer.sizes(shape)]);
    return writer.node("Reshape", [repeated, writer.sizes([batch, numHeads, keys, width])], { allowzero: 1 });
  };
  const values = (): string => {
    if (masks.valid === undefined) return v;
    const rows = writer.node("Transpose", [masks.valid], { perm: [0, 1, 3, 2] });
    return writer.node("Where", [rows, v, zero]);
  };
  const transposed = writer.node("Transpose", [forAll(k)], { perm: [0, 1, 3, 2] });
  const scale = writer.scalar("f32", param<number>(node, "scale"));
  const scores = writer.node("Mul", [writer.node("MatMul", [q, transposed]), scale]);
  const softmax = (of: string): string => writer.node("Softmax", [of], { axis: -1 });
  const weights = ((): string => {
    if (visible === undefined) return softmax(scores);
    const masked = writer.node("Where", [visible, scores, writer.scalar("f32", -Infinity)]);
    // The softmax of a query without visible keys is NaN.
    return writer.node("Where", [visible, softmax(masked), zero]);
  })();
  return [writer.node("MatMul", [weights, forAll(values())]), undefined];
};
