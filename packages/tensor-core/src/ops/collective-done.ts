import { defineOperator, type Operator } from "../graph/operator.ts";
import type { CollectiveStartParams } from "./collective-start.ts";

export const collectiveDoneName = "collective-done";

/**
 * Wait for a `collective-start`. Reads and returns all of its results; moves no data. Has the parameters of the start.
 *
 * @param start the `collective-start` operator.
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
