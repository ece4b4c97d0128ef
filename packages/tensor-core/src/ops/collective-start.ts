import { InvariantError } from "../errors.ts";
import type { Params } from "../graph/graph.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";

export const collectiveStartName = "collective-start";

/** The operator's own parameters, and: */
export type CollectiveStartParams = Params & {
  /** The operator that is begun. */
  readonly collective: string;
  /** Its place among the collectives of the trace. */
  readonly position: number;
  /** It was split where it stood: the next one starts when it is done. */
  readonly standing?: true;
};

/**
 * Begin a collective and go on computing. Its operands must not be written, and its results not be touched, before the
 * `collective-done` that takes the results. Made by `scheduleCollectives` after differentiation, so it has no gradient
 * rule.
 *
 * @param rows the operators that may be begun: those with a `collective` function.
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
