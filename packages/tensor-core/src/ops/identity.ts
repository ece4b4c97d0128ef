import { defineOperator, type Operator } from "../graph/operator.ts";
import { passThrough } from "./shared/movement-rules.ts";

/** Returns the operand unchanged. Marks the primals of a differentiated function; a pass removes identity nodes. */
export const identityOperator: Operator = defineOperator({
  name: "identity",
  rearranges: true,
  viewOffset: () => 0,
  rewrites: [passThrough],
  infer: ([input]) => [input!],
  cost: () => ({ flops: 0, bytesRead: 0, bytesWritten: 0 }),
  reference: ([input]) => [input!.data.slice()],
  vjp: ({ cotangents }) => [...cotangents],
});
