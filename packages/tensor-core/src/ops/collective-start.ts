import { InvariantError } from "../errors.ts";
import type { Params } from "../graph/graph.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";

export const collectiveStartName = "collective-start";

/** Parameters of a `collective-start` node: the parameters of the started operator, and the fields below. */
export type CollectiveStartParams = Params & {
  /** Name of the started operator. */
  readonly collective: string;
  /** Index of the collective among all collectives of the trace. */
  readonly position: number;
  /**
   * Whether the collective was split at its position in the trace, so that the next collective starts only after this
   * collective is done.
   */
  readonly standing?: true;
};

/**
 * Creates the `collective-start` operator, which starts a collective without waiting for it. Until the corresponding
 * `collective-done` node, the operands must not be overwritten, and the results must not be read. `scheduleCollectives`
 * creates the nodes after differentiation, so the operator has no gradient rule.
 *
 * @param rows Operators; only operators with a `collective` function can be started.
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
    // Whether a collective may run in place: see `CollectiveRequest`.
    mayOverwrite: ({ params, ...node }, input, output) =>
      rowOf(params).mayOverwrite?.({ params, ...node }, input, output) ?? false,
    infer: (inputs, params) => rowOf(params).infer(inputs, params),
    cost: (inputs, outputs, params) => rowOf(params).cost(inputs, outputs, params),
    reference: (inputs, params, outputs) => rowOf(params).reference(inputs, params, outputs),
    collective: (ranks, params, outputs) => rowOf(params).collective!(ranks, params, outputs),
  });
};
