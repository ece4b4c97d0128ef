import { ShapeError } from "../errors.ts";
import { padInterior } from "../functions/movement.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import type { RewriteRule } from "../graph/rewrite-rule.ts";
import { bytesPerElement } from "../dtype.ts";
import type { KernelNode } from "../graph/kernel-node.ts";
import { elementCount, formatShape, rowMajorStrides } from "../shape.ts";
import { moveCost, readStrided } from "./shared/strided.ts";
import { listOf, ofConstant, sameSpecAsOperand } from "./shared/movement-rules.ts";

const sliceOfSlice: RewriteRule = (node, { producer, derive }) => {
  const { inputs, params } = node;
  const inner = producer(inputs[0]!);
  if (inner.op !== "slice") return undefined;
  const [starts, ends, strides] = [listOf(params["starts"]), listOf(params["ends"]), listOf(params["strides"])];
  const [offset, step] = [listOf(inner.params["starts"]), listOf(inner.params["strides"])];
  return derive(node, inner.inputs, {
    starts: starts.map((start, dim) => offset[dim]! + start * step[dim]!),
    // Last selected index plus one, because `end` may be beyond the operand of the inner slice.
    ends: ends.map(
      (end, dim) => offset[dim]! + (end > starts[dim]! ? (end - 1) * step[dim]! + 1 : starts[dim]! * step[dim]!),
    ),
    strides: strides.map((stride, dim) => stride * step[dim]!),
  });
};

/** Replaces a slice that only cuts broadcast dimensions by a smaller broadcast. */
const sliceOfBroadcast: RewriteRule = ({ inputs, params, specs }, { producer, spec, derive }) => {
  const inner = producer(inputs[0]!);
  if (inner.op !== "broadcast-to") return undefined;
  const { shape } = specs[0]!;
  const operand = spec(inner.inputs[0]!).shape;
  const lead = shape.length - operand.length;
  const whole = operand.every(
    (size, dim) => size === 1 || (size === shape[dim + lead] && listOf(params["strides"])[dim + lead] === 1),
  );
  return whole && elementCount(shape) > 0 ? derive(inner, inner.inputs, { shape: [...shape] }) : undefined;
};

/**
 * Replaces a slice inside one operand of a `concat` by a slice of the operand. Example: gradients are read directly,
 * without packing and unpacking a bucket.
 */
const sliceOfConcat: RewriteRule = (node, { producer, spec, derive }) => {
  const { inputs, params } = node;
  const inner = producer(inputs[0]!);
  if (inner.op !== "concat") return undefined;
  const dim = inner.params["dim"] as number;
  const [starts, ends] = [listOf(params["starts"]), listOf(params["ends"])];
  let begin = 0;
  for (const operand of inner.inputs) {
    const size = spec(operand).shape[dim]!;
    if (size > 0 && starts[dim]! >= begin && ends[dim]! <= begin + size && ends[dim]! > starts[dim]!) {
      const shift = (list: readonly number[]): number[] => list.map((index, i) => (i === dim ? index - begin : index));
      return derive(node, [operand], { starts: shift(starts), ends: shift(ends) });
    }
    begin += size;
  }
  return undefined;
};

export type SliceParams = { starts: readonly number[]; ends: readonly number[]; strides: readonly number[] };

/**
 * Returns the offset in elements of a slice that is contiguous in the memory of its operand; `undefined` if not
 * contiguous.
 */
const contiguousOffset = ({
  inputs: [x],
  outputs: [y],
  params: { starts, strides },
}: KernelNode<SliceParams>): number | undefined => {
  const [{ shape: operand }, { shape: result }] = [x!, y!];
  if (elementCount(result) === 0) return 0;
  const cut = result.findIndex((size) => size > 1);
  // Contiguous: one index in the leading dimensions, a range with stride 1 in the first dimension longer than 1, and
  // all later dimensions whole.
  if (cut !== -1 && (strides[cut] !== 1 || result.some((size, dim) => dim > cut && size !== operand[dim])))
    return undefined;
  const steps = rowMajorStrides(operand);
  return starts.reduce((offset, start, dim) => offset + start * steps[dim]!, 0);
};

/**
 * Selects every `strides[d]`-th index from `starts[d]` (inclusive) to `ends[d]` (exclusive) along each dimension d. The
 * gradient has zeros around and between the selected entries.
 */
export const sliceOperator: Operator = defineOperator<SliceParams>({
  name: "slice",
  selects: true,
  viewOffset: (node) => {
    const offset = contiguousOffset(node);
    return offset === undefined ? undefined : offset * bytesPerElement[node.inputs[0]!.dtype];
  },
  rewrites: [sameSpecAsOperand, ofConstant, sliceOfSlice, sliceOfBroadcast, sliceOfConcat],
  infer: ([x], { starts, ends, strides }) => {
    const { shape } = x!;
    if ([starts, ends, strides].some((list) => list.length !== shape.length)) {
      throw new ShapeError(
        "slice",
        `${formatShape(shape)} needs ${shape.length} starts, ends and strides, got ${starts.length}, ${ends.length} and ${strides.length}; pass one per dimension`,
      );
    }
    return [
      {
        dtype: x!.dtype,
        shape: shape.map((size, dim) => {
          const [start, end, stride] = [starts[dim]!, ends[dim]!, strides[dim]!];
          if (![start, end, stride].every(Number.isInteger) || start < 0 || end < start || end > size || stride < 1) {
            throw new ShapeError(
              "slice",
              `${start}:${end}:${stride} is out of range for dimension ${dim} of ${formatShape(shape)}; need 0 ≤ start ≤ end ≤ ${size} and stride ≥ 1`,
            );
          }
          return Math.ceil((end - start) / stride);
        }),
      },
    ];
  },
  vjp: ({ inputs: [x], outputs: [y], cotangents: [g], params: { starts, strides } }) => {
    const high = x!.shape.map((size, dim) => size - starts[dim]! - spread(y!.shape[dim]!, strides[dim]!));
    return [
      padInterior(
        g!,
        starts,
        high,
        strides.map((stride) => stride - 1),
      ),
    ];
  },
  cost: moveCost,
  reference: ([x], { starts, strides }, [out]) => {
    const own = rowMajorStrides(x!.spec.shape);
    const offset = starts.reduce((sum, start, dim) => sum + start * own[dim]!, 0);
    return [
      readStrided(
        x!.data,
        out!.shape,
        own.map((step, dim) => step * strides[dim]!),
        offset,
      ),
    ];
  },
});

/**
 * Returns the length of the range that `count` indices with stride `stride` cover, from the first to the last index,
 * both included; 0 without indices.
 */
const spread = (count: number, stride: number): number => (count === 0 ? 0 : (count - 1) * stride + 1);
