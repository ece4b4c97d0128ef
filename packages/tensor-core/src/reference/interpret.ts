import { roundToStorage } from "../dtype.ts";
import { InvariantError } from "../errors.ts";
import type { Graph, Node } from "../graph/graph.ts";
import type { OperatorTable, ReferenceArray } from "../graph/operator.ts";
import { operators as allOperators } from "../ops/table.ts";

/** Ranks that take part in one collective, by their position in the world. */
type RankGroups = (axis: string) => readonly (readonly number[])[];

/**
 * Interpret a graph in f64 for a whole world of ranks in lockstep: node by node, all ranks before the next node. Slow
 * and right; what every test compares with.
 *
 * @param inputs per rank, the graph's inputs.
 * @param groups for an axis, the lists of ranks that form its groups. Default: one axis holding all ranks.
 * @returns per rank, the graph's outputs.
 */
export const interpretWorld = (
  graph: Graph,
  inputs: readonly (readonly ReferenceArray[])[],
  groups: RankGroups = () => [inputs.map((_, rank) => rank)],
  operators: OperatorTable = allOperators,
): ReferenceArray[][] => {
  const values: ReferenceArray[][][] = inputs.map(() => []);
  const argumentIndex = new Map(graph.inputs.map((id, index) => [id, index]));
  const read = (rank: number, node: Node): ReferenceArray[] => node.inputs.map((ref) => values[rank]![ref.node]![ref.output]!);
  const keep = (rank: number, node: Node, data: readonly Float64Array[]): void => {
    values[rank]![node.id] = node.specs.map((spec, output) => ({
      spec,
      data: data[output]!.map((value) => roundToStorage(value, spec.dtype)),
    }));
  };

  for (const node of graph.nodes) {
    const operator = operators[node.op];
    if (operator === undefined) throw new InvariantError(`operator "${node.op}" is not in the operator table`);
    if (operator.collective !== undefined) {
      for (const group of groups(String(node.params["axis"]))) {
        const results = operator.collective(
          group.map((rank) => read(rank, node)),
          node.params,
          node.specs,
        );
        group.forEach((rank, position) => keep(rank, node, results[position]!));
      }
      continue;
    }
    for (let rank = 0; rank < inputs.length; rank++) {
      const index = argumentIndex.get(node.id);
      keep(rank, node, index === undefined ? operator.reference(read(rank, node), node.params, node.specs) : [inputs[rank]![index]!.data]);
    }
  }
  return inputs.map((_, rank) => graph.outputs.map((ref) => values[rank]![ref.node]![ref.output]!));
};
