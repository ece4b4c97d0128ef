import type { CollectiveHandle, CollectiveKind, CollectiveRequest, Communicator, Communicators } from "../communicator.ts";
import { ArgumentError, InvariantError } from "../errors.ts";
import { type Graph, type Node, specOf } from "../graph/graph.ts";
import { byteLength } from "../shape.ts";

/** What a `collective-start` node asks of the communicator, but for the addresses. */
export interface CollectivePlan {
  readonly axis: string;
  readonly axisSize: number;
  readonly inputBytes: number;
  readonly outputBytes: number;
  readonly request: Omit<CollectiveRequest, "input" | "output">;
  /** Of `send-receive`: who sends to whom. A rank looks up its own peers. */
  readonly pairs?: readonly (readonly [from: number, to: number])[];
}

export const planCollective = (graph: Graph, node: Node): CollectivePlan => {
  const { collective, axis, axisSize, reduction, root, pairs } = node.params;
  if (node.inputs.length !== 1)
    throw new InvariantError(`collective ${String(collective)} has ${node.inputs.length} operands instead of one`);
  const input = specOf(graph, node.inputs[0]!);
  return {
    axis: String(axis),
    axisSize: Number(axisSize),
    inputBytes: byteLength(input),
    outputBytes: byteLength(node.specs[0]!),
    request: {
      kind: collective as CollectiveKind,
      dtype: input.dtype,
      ...(reduction !== undefined && { reduction: reduction as "sum" | "max" | "min" }),
      ...(root !== undefined && { root: Number(root) }),
    },
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

/** Position of this rank along the axis of an `axis-index` node. */
export const rankAlong = ({ params }: Node, communicators: Communicators): number =>
  groupOf(String(params["axis"]), Number(params["axisSize"]), communicators)?.rank ?? 0;

/**
 * Hand a collective to its communicator. On an axis of one rank the result is the operand, copied if need be.
 *
 * @param input `plan.inputBytes` bytes, `output` `plan.outputBytes`, in memory that the communicator can read.
 * @returns the handle to wait for, `undefined` when the result is there already.
 */
export const beginCollective = (
  plan: CollectivePlan,
  input: Uint8Array,
  output: Uint8Array,
  communicators: Communicators,
): CollectiveHandle | undefined => {
  const group = groupOf(plan.axis, plan.axisSize, communicators);
  if (group === undefined) {
    if (input.buffer !== output.buffer || input.byteOffset !== output.byteOffset) output.set(input);
    return undefined;
  }
  const to = plan.pairs?.find(([from]) => from === group.rank)?.[1];
  const from = plan.pairs?.find((pair) => pair[1] === group.rank)?.[0];
  return group.start({ ...plan.request, ...(to !== undefined && { to }), ...(from !== undefined && { from }), input, output });
};
