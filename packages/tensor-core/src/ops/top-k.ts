import { arithmetic } from "../dtype.ts";
import { ShapeError } from "../errors.ts";
import { broadcastTo, reshape } from "../functions/movement.ts";
import { add, iota, multiply, zeros } from "../functions/elementwise.ts";
import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatShape } from "../shape.ts";
import { linesAlong } from "./shared/along-dim.ts";

/**
 * Parameters of `top-k`. `by`: sort key. `sorted`: whether results are in descending order; if false, in index order.
 */
export type TopKParams = { readonly k: number; readonly sorted: boolean; readonly by: "value" | "magnitude" };

/**
 * The `k` largest entries (f32, i32, u32) along the last dimension, and their indices (i32). Equal entries are ordered
 * by index; NaN is treated as the maximum.
 */
export const topKOperator: Operator = defineOperator<TopKParams>({
  name: "top-k",
  infer: ([x], { k, by }) => {
    const size = x!.shape.at(-1);
    const supported = by === "magnitude" ? ["f32"] : arithmetic;
    if (!supported.includes(x!.dtype))
      throw new ShapeError(
        "topK",
        `dtype ${x!.dtype} is not supported by ${by}, expected ${supported.join(", ")}; cast the operand first`,
      );
    if (size === undefined || !Number.isInteger(k) || k < 0 || k > size) {
      throw new ShapeError(
        "topK",
        `k = ${k} entries cannot be taken along the last dimension of ${formatShape(x!.shape)}; use 0 ≤ k ≤ ${size ?? 0}`,
      );
    }
    const shape = [...x!.shape.slice(0, -1), k];
    return [
      { dtype: x!.dtype, shape },
      { dtype: "i32", shape },
    ];
  },
  vjp: ({ inputs: [x], outputs: [values, indices], cotangents: [g] }) => {
    const size = x!.shape.at(-1)!;
    const rows = elementCount(x!.shape.slice(0, -1));
    const k = values!.shape.at(-1)!;
    // Flatten the rows, so that a single scatter with flat indices handles all rows.
    const flat = add(
      reshape(indices!, [rows, k]),
      multiply(broadcastTo(iota([rows, 1], "i32", { dim: 0 }), [rows, k]), size),
    );
    return [
      reshape(
        emitOne("scatter-add", [zeros([rows * size]), reshape(flat, [rows * k]), reshape(g!, [rows * k])], { dim: 0 }),
        x!.shape,
      ),
    ];
  },
  cost: ([x], outputs) => ({
    flops: 2 * elementCount(x!.shape),
    bytesRead: 2 * byteLength(x!),
    bytesWritten: outputs.reduce((total, output) => total + byteLength(output), 0),
  }),
  reference: ([x], { k, sorted, by }) => {
    const picked = linesAlong(x!.spec.shape, x!.spec.shape.length - 1).flatMap(({ start, size }) => {
      const row = x!.data.subarray(start, start + size);
      const rank = (i: number): number =>
        Number.isNaN(row[i]!) ? Infinity : by === "magnitude" ? Math.abs(row[i]!) : row[i]!;
      const order = Array.from(row, (_, i) => i).sort((a, b) => {
        const nanFirst = Number(Number.isNaN(row[b]!)) - Number(Number.isNaN(row[a]!));
        const difference = rank(b) === rank(a) ? 0 : rank(b) - rank(a);
        return nanFirst || difference || a - b;
      });
      const best = order.slice(0, k);
      if (!sorted) best.sort((a, b) => a - b);
      return best.map((i) => [row[i]!, i] as const);
    });
    return [Float64Array.from(picked, ([value]) => value), Float64Array.from(picked, ([, index]) => index)];
  },
});
