import { defineOperator, type Operator } from "../graph/operator.ts";

/** Wait for a `collective-start`. Takes all of its results and gives them on; moves nothing. Parameters are those of the start. */
export const collectiveDoneOperator: Operator = defineOperator({
  name: "collective-done",
  infer: (inputs) => [...inputs],
  cost: () => ({ flops: 0, bytesRead: 0, bytesWritten: 0 }),
  reference: (inputs) => inputs.map((input) => input.data.slice()),
});
