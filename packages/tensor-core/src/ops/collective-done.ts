import { defineOperator, type Operator } from "../graph/operator.ts";
import type { CollectiveStartParams } from "./collective-start.ts";

export const collectiveDoneName = "collective-done";

/**
 * Wait for a `collective-start`. Takes all of its results and gives them on; moves nothing. Parameters are those of the
 * start.
 *
 * @param start the operator that it waits for.
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
