import { roleOf } from "../ops/role.ts";
import { roundToStorage } from "../dtype.ts";
import { OperatorError } from "../errors.ts";
import type { Graph, Node } from "../graph/graph.ts";
import { isUserOperator, type Operator, type OperatorTable, type ReferenceArray } from "../graph/operator.ts";
import { operatorOf } from "../ops/lookup.ts";
import { operators as allOperators } from "../ops/table.ts";
import { elementCount, formatSpec } from "../shape.ts";
import {
  ancestorsOf,
  collectivesOf,
  isCollective,
  matchedInOrder,
  type RankCollectives,
} from "../passes/collective-order.ts";
import { expandCompositions } from "../passes/expand-compositions.ts";

/**
 * Prepares a graph for the interpreters: replaces users' operators that have no reference implementation by their
 * compositions.
 */
export const prepareForReference = (graph: Graph): Graph =>
  expandCompositions(graph, (operator) => operator.referenceIsComposition !== true);

/**
 * Computes the results of one node with the reference implementation of its operator. Throws OperatorError if the
 * reference of a user's operator returns results that contradict the shape rule.
 */
const referenceOf = (operator: Operator, node: Node, inputs: readonly ReferenceArray[]): readonly Float64Array[] => {
  if (!isUserOperator(node.op)) return operator.reference(inputs, node.params, node.specs);
  // Pass copies, so that a user's function cannot modify the operands.
  const copies = inputs.map(({ spec, data }) => ({ spec, data: data.slice() }));
  const results: readonly unknown[] = operator.reference(copies, node.params, node.specs);
  const isRight = (data: unknown, output: number): boolean =>
    data instanceof Float64Array && data.length === elementCount(node.specs[output]!.shape);
  if (!Array.isArray(results) || results.length !== node.specs.length || !results.every(isRight))
    throw new OperatorError(
      node.op,
      `its reference returned ${Array.isArray(results) ? results.map(describeData).join(", ") || "nothing" : describeData(results)} for ${node.specs.map(formatSpec).join(", ")}; return the list of its results, each a Float64Array with the number of elements of its shape`,
    );
  return results as readonly Float64Array[];
};

const describeData = (data: unknown): string =>
  ArrayBuffer.isView(data) || Array.isArray(data)
    ? `${data.constructor.name} of ${(data as { length?: number }).length ?? 0}`
    : String(data);

/** Function from a mesh axis to the groups of world ranks that run collectives along the axis together. */
type RankGroups = (axis: string) => readonly (readonly number[])[];

/**
 * Interprets a graph in f64 for all ranks of a world. Each node is computed on all ranks before the next node. Slow and
 * exact; all tests use this interpreter as the reference.
 *
 * @param inputs Inputs of the graph, for each rank.
 * @param groups Returns the groups of ranks along an axis. Default: one group with all ranks.
 * @param operators Operators whose reference implementations are used. Tests pass operators that round to f32. Other
 * operator properties always come from the built-in table.
 * @returns Outputs of the graph, for each rank.
 */
export const interpretWorld = (
  source: Graph,
  inputs: readonly (readonly ReferenceArray[])[],
  groups: RankGroups = () => [inputs.map((_, rank) => rank)],
  operators: OperatorTable = allOperators,
): ReferenceArray[][] => {
  const graph = prepareForReference(source);
  const values: ReferenceArray[][][] = inputs.map(() => []);
  const argumentIndex = new Map(graph.inputs.map((id, index) => [id, index]));
  const read = (rank: number, node: Node): ReferenceArray[] =>
    node.inputs.map((ref) => values[rank]![ref.node]![ref.output]!);
  const keep = (rank: number, node: Node, data: readonly Float64Array[]): void => {
    values[rank]![node.id] = node.specs.map((spec, output) => ({
      spec,
      data: data[output]!.map((value) => roundToStorage(value, spec.dtype)),
    }));
  };

  for (const node of graph.nodes) {
    const operator = operators[node.op] ?? operatorOf(graph, node.op);
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
      keep(
        rank,
        node,
        index === undefined ? referenceOf(operator, node, read(rank, node)) : [inputs[rank]![index]!.data],
      );
    }
  }
  return inputs.map((_, rank) => graph.outputs.map((ref) => values[rank]![ref.node]![ref.output]!));
};

/**
 * Interprets a different graph on each rank in f64. Graphs may differ in everything except their collectives. Before
 * each collective, the ranks of its group compute the nodes on which the collective depends.
 *
 * @param sources Graph of each rank.
 * @param inputs Inputs of each rank's graph.
 * @param axes For each rank, the ranks of its group along each axis. Default: one group with all ranks along each axis.
 * @returns Outputs of each rank's graph.
 * @throws CollectiveOrderError if the collectives are incompatible.
 */
export const interpretRanks = (
  sources: readonly Graph[],
  inputs: readonly (readonly ReferenceArray[])[],
  axes?: readonly RankCollectives["axes"][],
): ReferenceArray[][] => {
  const graphs = sources.map(prepareForReference);
  const values: ReferenceArray[][][] = graphs.map(() => []);
  const collectives = graphs.map((graph) => graph.nodes.filter(isCollective));
  const ranks = graphs.map((graph, rank) => ({
    axes:
      axes?.[rank] ??
      Object.fromEntries(collectives[rank]!.map(({ params }) => [String(params["axis"]), graphs.map((_, i) => i)])),
    collectives: collectivesOf(graph, collectives[rank]!),
  }));
  const read = (rank: number, node: Node): ReferenceArray[] =>
    node.inputs.map((ref) => values[rank]![ref.node]![ref.output]!);
  const keep = (rank: number, node: Node, data: readonly Float64Array[]): void => {
    values[rank]![node.id] = node.specs.map((spec, output) => ({
      spec,
      data: data[output]!.map((value) => roundToStorage(value, spec.dtype)),
    }));
  };
  const compute = (rank: number, nodes: readonly Node[]): void => {
    for (const node of nodes) {
      if (values[rank]![node.id] !== undefined) continue;
      const { axes: groups } = ranks[rank]!;
      const index = graphs[rank]!.inputs.indexOf(node.id);
      if (index >= 0) keep(rank, node, [inputs[rank]![index]!.data]);
      else if (roleOf(node) === "position")
        keep(rank, node, [Float64Array.of(groups[String(node.params["axis"])]!.indexOf(rank))]);
      else keep(rank, node, referenceOf(operatorOf(graphs[rank]!, node.op), node, read(rank, node)));
    }
  };
  for (const { positions } of matchedInOrder(ranks)) {
    const nodes = new Map([...positions].map(([rank, position]) => [rank, collectives[rank]![position]!]));
    for (const [rank, { id }] of nodes)
      compute(
        rank,
        ancestorsOf(graphs[rank]!, id).map((ancestor) => graphs[rank]!.nodes[ancestor]!),
      );
    const [[rank, node]] = nodes as unknown as [[number, Node]];
    const members = ranks[rank]!.axes[String(node.params["axis"])]!;
    const absent = read(rank, node).map(({ spec, data }) => ({ spec, data: new Float64Array(data.length) }));
    const results = allOperators[node.op]!.collective!(
      members.map((member) => (nodes.has(member) ? read(member, nodes.get(member)!) : absent)),
      node.params,
      node.specs,
    );
    for (const [member, own] of nodes) keep(member, own, results[members.indexOf(member)]!);
  }
  return graphs.map((graph, rank) => {
    compute(rank, graph.nodes);
    return graph.outputs.map((ref) => values[rank]![ref.node]![ref.output]!);
  });
};
