import type { CollectiveHandle, Communicators } from "../communicator.ts";
import type { Node } from "../graph/graph.ts";
import { phaseOf } from "../inspection/phase.ts";
import { byteLength, elementCount, formatSpec } from "../shape.ts";
import type { SpanArgs, SpanSink } from "../span-sink.ts";
import type { CollectivePlan } from "./collective-plan.ts";

/** Returns the name of a node's span: `op scope`. */
export const spanNameOf = (op: string, scope: string): string => (scope === "" ? op : `${op} ${scope}`);

/** Creates the attributes of a kernel's span. Call once per node, and use the same object in all runs. */
export const nodeArgsOf = (node: Node): SpanArgs => ({
  operator: node.op,
  ...(node.scope !== "" && { scope: node.scope }),
  phase: phaseOf(node),
  shape: node.specs.map(formatSpec).join(" "),
  elements: node.specs.reduce((sum, { shape }) => sum + elementCount(shape), 0),
  bytes: node.specs.reduce((sum, spec) => sum + byteLength(spec), 0),
});

const collectiveArgsOf = ({ scope }: Node, plan: CollectivePlan, communicators: Communicators): SpanArgs => {
  const { axis, inputBytes, outputBytes, pairs, request } = plan;
  const { kind, dtype, priority } = request;
  const group = communicators[axis];
  const members = group?.members ?? [0];
  const own = group?.rank ?? 0;
  const to = pairs?.find(([from]) => from === own)?.[1];
  const from = pairs?.find((pair) => pair[1] === own)?.[0];
  const elements = inputBytes[0]! / byteLength({ dtype, shape: [1] });
  return {
    operator: kind,
    ...(scope !== "" && { scope }),
    shape: formatSpec({ dtype, shape: [elements] }),
    elements,
    bytes: inputBytes[0]!,
    resultBytes: outputBytes[0]!,
    axis,
    ...(pairs === undefined ? { ranks: members } : {}),
    ...(to !== undefined && { to: members[to]! }),
    ...(from !== undefined && { from: members[from]! }),
    ...(priority !== undefined && { priority }),
  };
};

/**
 * Records one collective of a run as three spans, linked by a flow: its start on the host, the collective itself, and
 * the wait for its result. A backend must call the methods in order. Times are in seconds; default: the current time.
 */
export class CollectiveSpans {
  private readonly spanSink: SpanSink;
  private readonly name: string;
  private readonly args: SpanArgs;
  private readonly flow: number;
  private startSeconds = 0;
  private waitSeconds = 0;

  constructor(spanSink: SpanSink, node: Node, plan: CollectivePlan, communicators: Communicators) {
    this.spanSink = spanSink;
    this.name = spanNameOf(plan.request.kind, node.scope);
    this.args = collectiveArgsOf(node, plan, communicators);
    this.flow = spanSink.newFlow();
  }

  /** Records that the host has started the collective. `since`: start time of the span, in seconds. */
  started(since: number): void {
    const span = {
      name: `start ${this.name}`,
      track: "host",
      startSeconds: since,
      endSeconds: this.spanSink.now(),
      args: this.args,
    } as const;
    this.spanSink.record({ ...span, flow: { id: this.flow, part: "begin" } });
    this.startSeconds = since;
  }

  /**
   * Records that the request is passed to the communicator now. Call only if the request is passed later than
   * `started`.
   */
  handedOver(): void {
    this.startSeconds = this.spanSink.now();
  }

  /** Records that the host begins to wait for the collective. */
  reached(since: number = this.spanSink.now()): void {
    this.waitSeconds = since;
  }

  /** Records that the result of the collective is available. */
  done(plan: CollectivePlan, handle: CollectiveHandle | undefined, communicators: Communicators): void {
    const endSeconds = this.spanSink.now();
    const algorithm = handle && communicators[plan.axis]?.algorithmOf?.(handle);
    const args = algorithm === undefined ? this.args : { ...this.args, algorithm };
    const { name, flow: id } = this;
    const span = { endSeconds, args } as const;
    this.spanSink.record({
      ...span,
      name,
      track: "collectives",
      startSeconds: this.startSeconds,
      flow: { id, part: "through" },
    });
    this.spanSink.record({
      ...span,
      name: `wait ${name}`,
      track: "waiting",
      startSeconds: this.waitSeconds,
      flow: { id, part: "end" },
    });
  }
}
