import type { CollectiveParams } from "../graph/collective-params.ts";
import { InvariantError } from "../errors.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength } from "../shape.ts";

/** This rank's coordinate along a mesh axis, an i32 scalar. Needs no communication. */
export const axisIndexOperator: Operator = defineOperator<CollectiveParams>({
  name: "axis-index",
  role: "position",
  infer: () => [{ dtype: "i32", shape: [] }],
  cost: (_, outputs) => ({ flops: 0, bytesRead: 0, bytesWritten: byteLength(outputs[0]!) }),
  reference: () => {
    throw new InvariantError("axis-index has a value only inside a world; the interpreter calls its collective rule");
  },
  collective: (ranks) => ranks.map((_, rank) => [Float64Array.of(rank)]),
  vjp: () => [],
});
