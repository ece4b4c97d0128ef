import { optimizationBarrier } from "../functions/optimization-barrier.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";

/**
 * Returns all operands unchanged, after all of them are computed. See `optimizationBarrier` in
 * `functions/optimization-barrier.ts`.
 */
export const optimizationBarrierOperator: Operator = defineOperator({
  name: "optimization-barrier",
  rearranges: true,
  role: "barrier",
  viewOffset: () => 0,
  infer: (inputs) => [...inputs],
  cost: () => ({ flops: 0, bytesRead: 0, bytesWritten: 0 }),
  reference: (inputs) => inputs.map((input) => input.data.slice()),
  vjp: ({ cotangents }) => optimizationBarrier(...cotangents),
});
