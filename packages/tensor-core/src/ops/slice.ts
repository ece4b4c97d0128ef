import { ShapeError } from "../errors.ts";
import { padInterior } from "../functions/movement.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { formatShape, rowMajorStrides } from "../shape.ts";
import { moveCost, readStrided } from "./strided.ts";

type SliceParams = { starts: readonly number[]; ends: readonly number[]; strides: readonly number[] };

/** Every `strides[d]`-th index from `starts[d]` up to, not including, `ends[d]`. The gradient puts zeros around and between. */
export const sliceOperator: Operator = defineOperator<SliceParams>({
  name: "slice",
  infer: ([x], { starts, ends, strides }) => {
    const { shape } = x!;
    if ([starts, ends, strides].some((list) => list.length !== shape.length)) {
      throw new ShapeError(
        "slice",
        `${formatShape(shape)} needs ${shape.length} starts, ends and strides, got ${starts.length}, ${ends.length} and ${strides.length}; give one per dimension`,
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
              `${start}:${end}:${stride} does not lie in dimension ${dim} of ${formatShape(shape)}; need 0 ≤ start ≤ end ≤ ${size} and stride ≥ 1`,
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

/** Indices from the first to the last of `count` steps, both included. */
const spread = (count: number, stride: number): number => (count === 0 ? 0 : (count - 1) * stride + 1);
