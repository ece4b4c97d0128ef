import { ShapeError } from "../errors.ts";
import { arange, less, where, zeros } from "../functions/elementwise.ts";
import { scatterAdd } from "../functions/indexing.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatSpec } from "../shape.ts";

export type CompactParams = { readonly capacity: number };

/**
 * Selects the entries of x (f32 [n]) with magnitude at least |bound| (f32 []), in index order; only the first
 * `capacity` are returned. Outputs: values and indices (i32), both padded with zeros; the number of matching entries
 * (i32), including entries beyond the capacity; and the largest magnitude of x. Zeros are never selected. NaN entries
 * are always selected and are treated as the largest magnitude; a NaN bound is treated as infinite.
 */
export const compactOperator: Operator = defineOperator<CompactParams>({
  name: "compact",
  infer: ([x, bound], { capacity }) => {
    if (x!.dtype !== "f32" || x!.shape.length !== 1)
      throw new ShapeError("compact", `got ${formatSpec(x!)}, expected f32 [n]; cast it first, and flatten it`);
    if (bound!.dtype !== "f32" || bound!.shape.length !== 0)
      throw new ShapeError(
        "compact",
        `the bound must be an f32 scalar, got ${formatSpec(bound!)}; reduce or reshape it to f32[]`,
      );
    if (!Number.isInteger(capacity) || capacity < 0)
      throw new ShapeError("compact", `capacity ${capacity} is not a size; use an integer of at least 0`);
    return [
      { dtype: "f32", shape: [capacity] },
      { dtype: "i32", shape: [capacity] },
      { dtype: "i32", shape: [] },
      { dtype: "f32", shape: [] },
    ];
  },
  // Gradients flow only through the values, not through the largest magnitude.
  vjp: ({ inputs: [x], outputs: [values, indices, count], cotangents: [g] }) => {
    const selected = where(less(arange(values!.shape[0]!), count!), g!, 0);
    return [scatterAdd(zeros(x!.shape), indices!, selected), undefined];
  },
  cost: ([x], outputs) => ({
    flops: 2 * elementCount(x!.shape),
    bytesRead: byteLength(x!),
    bytesWritten: outputs.reduce((total, output) => total + byteLength(output), 0),
  }),
  reference: ([x, bound], { capacity }) => {
    const [values, indices] = [new Float64Array(capacity), new Float64Array(capacity)];
    const least = Number.isNaN(bound!.data[0]!) ? Infinity : Math.abs(bound!.data[0]!);
    let [count, greatest] = [0, 0];
    x!.data.forEach((value, i) => {
      const magnitude = Math.abs(value);
      greatest = Math.max(greatest, magnitude);
      if (magnitude === 0 || magnitude < least) return;
      if (count < capacity) [values[count], indices[count]] = [value, i];
      count++;
    });
    return [values, indices, Float64Array.of(count), Float64Array.of(greatest)];
  },
});
