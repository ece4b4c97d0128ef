import { ShapeError } from "../errors.ts";
import { slice } from "../functions/movement.ts";
import type { ValueRef } from "../graph/graph.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import type { RewriteRule } from "../graph/rewrite-rule.ts";
import { byteLength, elementCount, formatShape, requireNumberOf, rowMajorStrides, sameShape } from "../shape.ts";
import { walkStrided } from "./shared/strided.ts";
import { listOf } from "./shared/movement-rules.ts";

const padOfNothing: RewriteRule = ({ inputs, specs }, { spec }) =>
  elementCount(specs[0]!.shape) > 0 && sameShape(spec(inputs[0]!).shape, specs[0]!.shape) ? inputs[0]! : undefined;

/**
 * Replaces a pad whose operand is contiguous in the result by a `concat` with constants. The memory plan can then place
 * the operand directly in the result.
 */
const padAsConcat: RewriteRule = ({ inputs, params }, { spec, emit, constant }) => {
  const { dtype, shape } = spec(inputs[0]!);
  const [low, high] = [listOf(params["low"]), listOf(params["high"])];
  const [dim, ...others] = shape.flatMap((_, own) => (low[own]! + high[own]! > 0 ? [own] : []));
  if (dim === undefined || others.length > 0 || listOf(params["interior"]).some((gap) => gap > 0)) return undefined;
  if (elementCount(shape) === 0 || shape.slice(0, dim).some((size) => size !== 1)) return undefined;
  const entries = (size: number): ValueRef[] =>
    size === 0
      ? []
      : [constant({ dtype, shape: shape.map((own, i) => (i === dim ? size : own)) }, params["value"] as number)];
  return emit("concat", [...entries(low[dim]!), inputs[0]!, ...entries(high[dim]!)], { dim });
};

export type PadParams = { low: readonly number[]; high: readonly number[]; interior: readonly number[]; value: number };

/**
 * Pads with `value` along each dimension d: `low[d]` entries before, `high[d]` after, and `interior[d]` between
 * adjacent entries of `x`. The gradient is the strided slice at the positions of `x`.
 */
export const padOperator: Operator = defineOperator<PadParams>({
  name: "pad",
  rewrites: [padOfNothing, padAsConcat],
  infer: ([x], { low, high, interior, value }) => {
    const { shape } = x!;
    requireNumberOf("pad", Number(value), x!.dtype);
    for (const list of [low, high, interior]) {
      if (list.length !== shape.length || list.some((size) => !Number.isInteger(size) || size < 0)) {
        throw new ShapeError(
          "pad",
          `[${list.join(", ")}] does not pad ${formatShape(shape)}; pass one integer ≥ 0 per dimension`,
        );
      }
    }
    return [
      {
        dtype: x!.dtype,
        shape: shape.map((size, dim) => low[dim]! + high[dim]! + (size === 0 ? 0 : size + (size - 1) * interior[dim]!)),
      },
    ];
  },
  vjp: ({ inputs: [x], cotangents: [g], params: { low, interior } }) => {
    const ends = x!.shape.map((size, dim) => low[dim]! + (size === 0 ? 0 : size + (size - 1) * interior[dim]!));
    return [
      slice(
        g!,
        low,
        ends,
        interior.map((gap) => gap + 1),
      ),
    ];
  },
  cost: ([x], [out]) => ({ flops: 0, bytesRead: byteLength(x!), bytesWritten: byteLength(out!) }),
  reference: ([x], { low, interior, value }, [out]) => {
    const own = rowMajorStrides(out!.shape);
    const result = new Float64Array(out!.shape.reduce((product, size) => product * size, 1)).fill(value);
    const offset = low.reduce((sum, start, dim) => sum + start * own[dim]!, 0);
    walkStrided(
      x!.spec.shape,
      own.map((step, dim) => step * (interior[dim]! + 1)),
      offset,
      (position, place) => {
        result[place] = x!.data[position]!;
      },
    );
    return [result];
  },
});
