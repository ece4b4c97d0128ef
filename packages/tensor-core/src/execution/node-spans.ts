import type { CollectiveHandle, Communicators } from "../communicator.ts";
import type { Node } from "../graph/graph.ts";
import { phaseOf } from "../inspection/phase.ts";
import { byteLength, elementCount, formatSpec } from "../shape.ts";
import type { SpanArgs, SpanSink } from "../span-sink.ts";
import type { CollectivePlan } from "./collective-plan.ts";

/** The name of a node's span: `op scope`. */
export const spanNameOf = (op: string, scope: string): string => (scope === "" ? op : `${op} ${scope}`);

/** What a kernel's span says of its node: made once, and the same object in every run. */
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
 * Records one collective of a run as three spans, joined by a flow: where the host started it, how long it was under
 * way, and how long somebody waited for it. A backend tells its moments in order; what it does not tell is now.
 */
export class CollectiveSpans {
  private readonly spanSink: SpanSink;
  private readonly name: string;
  private readonly args: SpanArgs;
  private readonly flow: number;
  private begunSeconds = 0;
  private reachedSeconds = 0;

  constructor(spanSink: SpanSink, node: Node, plan: CollectivePlan, communicators: Communicators) {
    this.spanSink = spanSink;
    this.name = spanNameOf(plan.request.kind, node.scope);
    this.args = collectiveArgsOf(node, plan, communicators);
    this.flow = spanSink.newFlow();
  }

  /** The host came to its start at `since`, and has done its part of it. */
  started(since: number): void {
    const span = {
      name: `start ${this.name}`,
      track: "host",
      startSeconds: since,
      endSeconds: this.spanSink.now(),
      args: this.args,
    } as const;
    this.spanSink.record({ ...span, flow: { id: this.flow, part: "begin" } });
    this.begunSeconds = since;
  }

  /** The communicator is about to be handed the request, if that is later than the start. */
  handedOver(): void {
    this.begunSeconds = this.spanSink.now();
  }

  /** The host begins to wait for it. */
  reached(since: number = this.spanSink.now()): void {
    this.reachedSeconds = since;
  }

  /** Its result is there. */
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
      startSeconds: this.begunSeconds,
      flow: { id, part: "through" },
    });
    this.spanSink.record({
      ...span,
      name: `wait ${name}`,
      track: "waiting",
      startSeconds: this.reachedSeconds,
      flow: { id, part: "end" },
    });
  }
}
