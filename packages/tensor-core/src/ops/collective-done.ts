import { defineOperator, type Operator } from "../graph/operator.ts";
import type { CollectiveStartParams } from "./collective-start.ts";

export const collectiveDoneName = "collective-done";

/**
 * Creates the `collective-done` operator, which waits for a `collective-start` node and returns all results of that
 * node without copying. Has the parameters of the start node.
 *
 * @param start The `collective-start` operator.
 */
export const collectiveDoneOperator = (start: Operator): Operator =>
  defineOperator<CollectiveStartParams>({
    name: collectiveDoneName,
    role: "done",
    ...(start.hasEffect && { hasEffect: start.hasEffect }),
    viewOffset: () => 0,
    infer: (inputs) => [...inputs],
    cost: () => ({ flops: 0, bytesRead: 0, bytesWritten: 0 }),
    reference: (inputs) => inputs.map((input) => input.data.slice()),
  });
