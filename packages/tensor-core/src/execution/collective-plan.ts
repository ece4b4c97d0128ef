import type {
  CollectiveHandle,
  CollectiveKind,
  CollectiveRequest,
  Communicator,
  Communicators,
  RaggedRows,
} from "../communicator.ts";
import { ArgumentError, InvariantError } from "../errors.ts";
import { type Graph, type Node, specOf } from "../graph/graph.ts";
import { operators } from "../ops/table.ts";
import { checkRowCounts, readRowCounts } from "../ragged-rows.ts";
import { byteLength } from "../shape.ts";

/** Communicator request of a `collective-start` node, without memory addresses. */
export interface CollectivePlan {
  readonly axis: string;
  readonly axisSize: number;
  /** Size in bytes of each operand: the data, and for ragged collectives the row counts. */
  readonly inputBytes: readonly number[];
  /** Size in bytes of each result: the received data, and for ragged collectives the row counts. */
  readonly outputBytes: readonly number[];
  readonly request: Omit<CollectiveRequest, "input" | "output" | "ragged">;
  /** Rows per chunk of a ragged collective. Absent: not ragged. */
  readonly capacity?: number;
  /** Pairs of sender and receiver ranks of a `send-receive`. Each rank looks up its peers in the pairs. */
  readonly pairs?: readonly (readonly [from: number, to: number])[];
}

/**
 * Creates the request of a collective node. Throws InvariantError if the node is malformed.
 *
 * @example
 * ```ts
 * const options = { mesh: { data: 2 }, place: { data: 0 } };
 * const { graph } = trace((x: Tensor) => allReduce(x, "data"), [{ dtype: "f32", shape: [4] }], options);
 * const prepared = optimize(graph);
 * const start = prepared.nodes.find(({ params }) => params["collective"] !== undefined)!;
 * console.log(planCollective(prepared, start).inputBytes); // [16]
 * ```
 */
export const planCollective = (graph: Graph, node: Node): CollectivePlan => {
  const { collective, axis, axisSize, reduction, root, pairs, priority } = node.params;
  const op = String(collective);
  const ragged = operators[op]?.ragged;
  const inputs = node.inputs.map((ref) => specOf(graph, ref));
  const numExpected = ragged === undefined ? 1 : 2;
  if (inputs.length !== numExpected || node.specs.length !== numExpected)
    throw new InvariantError(
      `collective ${op} has ${inputs.length} operands and ${node.specs.length} results instead of ${numExpected} each`,
    );
  return {
    axis: String(axis),
    axisSize: Number(axisSize),
    inputBytes: inputs.map(byteLength),
    outputBytes: node.specs.map(byteLength),
    request: {
      kind: ragged?.kind ?? (op as CollectiveKind),
      dtype: inputs[0]!.dtype,
      ...(reduction !== undefined && { reduction: reduction as "sum" | "max" | "min" }),
      ...(root !== undefined && { root: Number(root) }),
      ...(priority !== undefined && { priority: Number(priority) }),
    },
    ...(ragged !== undefined && { capacity: inputs[0]!.shape[0]! / (ragged.chunkPerRank ? Number(axisSize) : 1) }),
    ...(pairs !== undefined && { pairs: pairs as unknown as readonly (readonly [number, number])[] }),
  };
};

/** Returns the communicator of a mesh axis; undefined if the graph was traced for a single rank along the axis. */
const groupOf = (axis: string, axisSize: number, communicators: Communicators): Communicator | undefined => {
  const group = communicators[axis];
  if (group === undefined) {
    if (axisSize === 1) return undefined;
    throw new ArgumentError(
      `the graph communicates along axis "${axis}" of ${axisSize} ranks, but no communicator was given for it; pass { communicators: { ${axis}: … } } to jit`,
    );
  }
  if (group.worldSize !== axisSize) {
    throw new ArgumentError(
      `the graph was traced for ${axisSize} ranks along "${axis}", but its communicator has ${group.worldSize}; trace with the mesh of the job`,
    );
  }
  return group;
};

/** Returns this rank's coordinate along the mesh axis of a node. The node must have the role `position`. */
export const rankAlong = ({ params }: Node, communicators: Communicators): number =>
  groupOf(String(params["axis"]), Number(params["axisSize"]), communicators)?.rank ?? 0;

/** Checks and returns the row counts of a ragged collective; `undefined` if the collective is not ragged. */
const raggedRows = (
  { request, capacity }: CollectivePlan,
  rank: number,
  rows: Uint8Array | undefined,
  receivedRows: Uint8Array | undefined,
): RaggedRows | undefined => {
  if (capacity === undefined || rows === undefined || receivedRows === undefined) return undefined;
  checkRowCounts(request.kind, rank, readRowCounts(rows), capacity);
  return { capacity, rows, receivedRows };
};

/** Runs a collective on an axis of one rank: copies the input to the output. */
const exchangeAlone = (input: Uint8Array, output: Uint8Array, ragged: RaggedRows | undefined): void => {
  if (ragged === undefined) {
    if (input.buffer !== output.buffer || input.byteOffset !== output.byteOffset) output.set(input);
    return;
  }
  const { capacity, rows, receivedRows } = ragged;
  const valid = capacity === 0 ? 0 : (input.byteLength / capacity) * readRowCounts(rows)[0]!;
  output.set(input.subarray(0, valid));
  output.fill(0, valid);
  receivedRows.set(rows);
};

/**
 * Starts a collective on its communicator. On an axis of one rank, the result is a copy of the operand.
 *
 * @param inputs Buffers with the sizes `plan.inputBytes`; `outputs`: buffers with the sizes `plan.outputBytes`. All
 * buffers must be in memory that the communicator can access.
 * @returns The handle to wait for; `undefined` if the result is already available.
 * @throws ArgumentError if a row count is negative or above the capacity. No data is sent in this case.
 */
export const beginCollective = (
  plan: CollectivePlan,
  inputs: readonly Uint8Array[],
  outputs: readonly Uint8Array[],
  communicators: Communicators,
): CollectiveHandle | undefined => {
  const group = groupOf(plan.axis, plan.axisSize, communicators);
  const [input, output] = [inputs[0]!, outputs[0]!];
  const ragged = raggedRows(plan, group?.rank ?? 0, inputs[1], outputs[1]);
  if (group === undefined) {
    exchangeAlone(input, output, ragged);
    return undefined;
  }
  const to = plan.pairs?.find(([from]) => from === group.rank)?.[1];
  const from = plan.pairs?.find((pair) => pair[1] === group.rank)?.[0];
  return group.start({
    ...plan.request,
    ...(to !== undefined && { to }),
    ...(from !== undefined && { from }),
    ...(ragged !== undefined && { ragged }),
    input,
    output,
  });
};
