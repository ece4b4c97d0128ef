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

/** What a `collective-start` node asks of the communicator, but for the addresses. */
export interface CollectivePlan {
  readonly axis: string;
  readonly axisSize: number;
  /** Bytes of each operand: what travels, and where only a part of it does, the row counts. */
  readonly inputBytes: readonly number[];
  /** Bytes of each result: what came, and where only a part did, the row counts. */
  readonly outputBytes: readonly number[];
  readonly request: Omit<CollectiveRequest, "input" | "output" | "ragged">;
  /** Of ragged collectives: rows per chunk. */
  readonly capacity?: number;
  /** Of `send-receive`: who sends to whom. A rank looks up its own peers. */
  readonly pairs?: readonly (readonly [from: number, to: number])[];
}

/** What an executor hands to a communicator for this node. @throws InvariantError for a node that is malformed. */
export const planCollective = (graph: Graph, node: Node): CollectivePlan => {
  const { collective, axis, axisSize, reduction, root, pairs, priority } = node.params;
  const op = String(collective);
  const ragged = operators[op]?.ragged;
  const inputs = node.inputs.map((ref) => specOf(graph, ref));
  const wanted = ragged === undefined ? 1 : 2;
  if (inputs.length !== wanted || node.specs.length !== wanted)
    throw new InvariantError(
      `collective ${op} has ${inputs.length} operands and ${node.specs.length} results instead of ${wanted} each`,
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

/** The communicator of an axis, when the graph was traced for more than one rank along it. */
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

/** Position of this rank along the axis that a node of role `position` names. */
export const rankAlong = ({ params }: Node, communicators: Communicators): number =>
  groupOf(String(params["axis"]), Number(params["axisSize"]), communicators)?.rank ?? 0;

/** The row counts of a ragged collective, checked; `undefined` for others. */
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

/** What a collective does on an axis of one rank: everything comes from this rank. */
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
 * Hand a collective to its communicator. On an axis of one rank the result is the operand, copied if need be.
 *
 * @param inputs as many bytes each as `plan.inputBytes` says, `outputs` as `plan.outputBytes`, in memory that the
 * communicator can read.
 * @returns the handle to wait for, `undefined` when the result is there already.
 * @throws ArgumentError where a row count lies outside 0 to the capacity; then nothing was sent.
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
