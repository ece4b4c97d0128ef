import { InvariantError } from "../errors.ts";
import type { Params } from "../graph/graph.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";

export const collectiveStartName = "collective-start";

/** Parameters of the started operator, and the ones below. */
export type CollectiveStartParams = Params & {
  /** Name of the started operator. */
  readonly collective: string;
  /** Index among the collectives of the trace. */
  readonly position: number;
  /** Whether the collective was split in place: the next collective starts only after it is done. */
  readonly standing?: true;
};

/**
 * Start a collective and continue computing. Until the `collective-done` that reads its results, its operands must not
 * be overwritten, and its results not be used. Created by `scheduleCollectives` after differentiation, so it has no
 * gradient rule.
 *
 * @param rows operators that can be started: those with a `collective` function.
 */
export const collectiveStartOperator = (rows: readonly Operator[]): Operator => {
  const table = new Map(rows.filter((row) => row.collective !== undefined).map((row) => [row.name, row]));
  const rowOf = ({ collective }: CollectiveStartParams): Operator => {
    const row = table.get(collective);
    if (row === undefined) throw new InvariantError(`collective-start: "${collective}" is not a collective operator`);
    return row;
  };
  return defineOperator<CollectiveStartParams>({
    name: collectiveStartName,
    role: "start",
    hasEffect: (params) => rowOf(params).hasEffect?.(params) ?? false,
    // See `CollectiveRequest`.
    mayOverwrite: ({ params, ...node }, input, output) =>
      rowOf(params).mayOverwrite?.({ params, ...node }, input, output) ?? false,
    infer: (inputs, params) => rowOf(params).infer(inputs, params),
    cost: (inputs, outputs, params) => rowOf(params).cost(inputs, outputs, params),
    reference: (inputs, params, outputs) => rowOf(params).reference(inputs, params, outputs),
    collective: (ranks, params, outputs) => rowOf(params).collective!(ranks, params, outputs),
  });
};
