import { ShapeError } from "../errors.ts";
import { slice } from "../functions/movement.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, formatShape, requireNumberOf, rowMajorStrides } from "../shape.ts";
import { walkStrided } from "./strided.ts";

type PadParams = { low: readonly number[]; high: readonly number[]; interior: readonly number[]; value: number };

/**
 * Put `low[d]` entries of `value` before dimension d, `high[d]` after it, and `interior[d]` between each two neighbours.
 * The gradient is the strided slice of what came from `x`.
 */
export const padOperator: Operator = defineOperator<PadParams>({
  name: "pad",
  infer: ([x], { low, high, interior, value }) => {
    const { shape } = x!;
    requireNumberOf("pad", Number(value), x!.dtype);
    for (const list of [low, high, interior]) {
      if (list.length !== shape.length || list.some((size) => !Number.isInteger(size) || size < 0)) {
        throw new ShapeError("pad", `[${list.join(", ")}] does not pad ${formatShape(shape)}; give one integer ≥ 0 per dimension`);
      }
    }
    return [
      { dtype: x!.dtype, shape: shape.map((size, dim) => low[dim]! + high[dim]! + (size === 0 ? 0 : size + (size - 1) * interior[dim]!)) },
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
