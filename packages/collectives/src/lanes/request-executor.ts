import { bytesPerElement, type DType } from "@skein/tensor-core";
import type { CollectiveRequest } from "@skein/tensor-core/backend";
import type { Arithmetic } from "../arithmetic.ts";
import { runWalkBlocking, scratchBytes, settleBlocking, settled, type Walk, walk } from "../execute.ts";
import type { MessageMemory } from "../message-memory.ts";
import { walkRagged } from "../ragged.ts";
import { type CollectiveSchedule, sentElements } from "../schedule.ts";
import { algorithmSelector } from "../select.ts";
import { groupTransport } from "../transport/group-transport.ts";
import { type Future, isLater, type Transport } from "../transport/transport.ts";
import { directAllGather } from "../algorithms/direct-all-gather.ts";
import { algorithms } from "../algorithms/table.ts";
import type { ControlBlock } from "../control-block/control-block.ts";
import { groupOf, kindOf, tagsOfGroupsAndKinds } from "../control-block/tag.ts";
import type { Preference } from "../control-block/world-connection.ts";
import { requestWord } from "../control-block/layout.ts";
import type { NextRequest, PostedRequest } from "./lane.ts";
import { combiningKinds } from "../requests/kind-facts.ts";
import type { NativeCollectives } from "../transport/native-collectives.ts";

export interface RequestExecutorParts {
  readonly control: ControlBlock;
  readonly arithmetic: Arithmetic;
  readonly memory: MessageMemory;
  readonly preference: Preference;
  /** Transport of one lane between all ranks of the world. */
  readonly transport: Transport;
  readonly lane: number;
  readonly natives: readonly NativeCollectives[];
}

/** Returns the number of elements of a request: `n` in the table of `CollectiveRequest`. */
const elementsOf = (request: CollectiveRequest, worldSize: number): number => {
  const elements = request.input.byteLength / bytesPerElement[request.dtype];
  return request.kind === "reduce-scatter" || request.kind === "all-to-all" ? elements / worldSize : elements;
};

interface Selector {
  readonly select: ReturnType<typeof algorithmSelector>;
  readonly hosts: Preference["hosts"];
}

/**
 * Returns the schedule and algorithm of an agreement, an internal exchange between ranks. The algorithm is fixed and
 * does not depend on this rank's preferences, because agreements detect different preferences.
 */
const agreementPlan = ({ input }: PostedRequest, { rank, worldSize }: Transport): Planned => ({
  schedule: directAllGather.schedule({ rank, worldSize, elementCount: input.byteLength }),
  algorithm: directAllGather.name,
});

/** Names of algorithms. The code of an algorithm, stored in the request, is the index of its name plus 1. */
const executedBy: readonly string[] = ["native", "exchange", "ragged", ...algorithms.map(({ name }) => name)];
const codes: ReadonlyMap<string, number> = new Map(executedBy.map((name, i) => [name, i + 1]));

/** Returns the name of the algorithm that executed a request; undefined for a request that was not executed. */
export const algorithmNamed = (code: number): string | undefined => executedBy[code - 1];

interface Planned {
  readonly schedule: CollectiveSchedule;
  readonly algorithm: string;
}

/**
 * A cached plan (schedule and algorithm), and the request fields for which the plan is valid. Group, kind and size must
 * also match; they are in the cache key.
 */
interface CachedPlan extends Planned {
  readonly dtype: DType;
  readonly root: number | undefined;
  readonly to: number | undefined;
  readonly from: number | undefined;
}

/** Plans and executes the requests of one lane. */
export class RequestExecutor {
  private readonly parts: RequestExecutorParts;
  private readonly selectors = new Map<string, Selector>();
  private readonly plans = new Map<number, CachedPlan[]>();
  private readonly groups = new Map<number, Transport>();
  private readonly nameOf = (tag: number): string => this.parts.control.nameOf(tag);

  constructor(parts: RequestExecutorParts) {
    this.parts = parts;
  }

  /**
   * Executes a request as a walk (a resumable execution), and stores the algorithm's code in the request.
   *
   * @returns number of bytes sent.
   */
  *execute(request: NextRequest): Walk<number> {
    const { arithmetic, memory } = this.parts;
    const group = groupOf(request.tag);
    const isAgreement = kindOf(request.tag) === "agreement";
    const native = this.nativeFor(request);
    if (native !== undefined) {
      this.recordAlgorithm(request, native.name);
      const answer = native.run(request, this.parts.lane, request.tag, this.nameOf);
      if (isLater(answer)) yield* settled(answer);
      return native.bytesSent(request);
    }
    this.parts.transport.describe?.(request.dtype);
    const transport = this.transportOf(group);
    if (request.ragged !== undefined) {
      this.recordAlgorithm(request, "ragged");
      return yield* walkRagged(request, request.tag, transport, arithmetic);
    }
    const { schedule, algorithm } = isAgreement
      ? agreementPlan(request, transport)
      : this.planOf(request, transport, group);
    this.recordAlgorithm(request, algorithm);
    const bytes = scratchBytes(schedule, request.dtype);
    const scratch = bytes === 0 ? undefined : memory.take(bytes);
    try {
      yield* walk(schedule, { ...request, ...(scratch && { scratch }) }, transport, arithmetic);
    } finally {
      if (scratch !== undefined) memory.give(scratch);
    }
    return isAgreement ? 0 : sentElements(schedule) * bytesPerElement[request.dtype];
  }

  /**
   * Executes a request in a thread that may block.
   *
   * @param wait blocks until a future may be ready.
   * @returns number of bytes sent.
   */
  executeBlocking(request: NextRequest, wait: (future: Future<unknown>) => void): number {
    const native = this.nativeFor(request);
    if (native === undefined) return runWalkBlocking(this.execute(request), wait);
    // Avoids the generators of a walk, whose creation takes as long as exchanging a few KiB.
    this.recordAlgorithm(request, native.name);
    const answer = native.run(request, this.parts.lane, request.tag, this.nameOf);
    if (isLater(answer)) settleBlocking(answer, wait);
    return native.bytesSent(request);
  }

  private recordAlgorithm({ at }: NextRequest, algorithm: string): void {
    this.parts.control.words[at + requestWord.algorithm] = codes.get(algorithm) ?? 0;
  }

  /**
   * Returns the native collectives that execute a request without a schedule, or undefined if there are none. The
   * choice is equal on all ranks.
   */
  private nativeFor(request: PostedRequest): NativeCollectives | undefined {
    const { natives, preference, transport } = this.parts;
    if (groupOf(request.tag) !== 0 || kindOf(request.tag) === "agreement") return undefined;
    const bytes = Math.max(request.input.byteLength, request.output.byteLength);
    // Some native collectives do not sum in rank order. Only sums of two operands have the same bits in every order.
    const anyOrder = !combiningKinds.has(request.kind) || transport.worldSize <= 2 || preference.order === "any";
    for (const native of natives)
      if ((native.rankOrder || anyOrder) && bytes > native.schedulesUpTo && native.covers(request)) return native;
    return undefined;
  }

  private transportOf(group: number): Transport {
    if (group === 0) return this.parts.transport;
    const known = this.groups.get(group);
    if (known !== undefined) return known;
    const made = groupTransport(this.parts.transport, this.parts.control.membersOf(group));
    this.groups.set(group, made);
    return made;
  }

  /**
   * Returns the plan of a request: its schedule and algorithm. Plans are cached, because training repeats the same few
   * requests.
   */
  private planOf(request: PostedRequest, transport: Transport, group: number): Planned {
    const { rank, worldSize } = transport;
    const { kind, dtype, root, to, from } = request;
    // The cache key is a number, because building a string takes longer than a small collective between threads.
    const key = request.input.byteLength * tagsOfGroupsAndKinds + (request.tag & (tagsOfGroupsAndKinds - 1));
    let plans = this.plans.get(key);
    if (plans === undefined) this.plans.set(key, (plans = []));
    for (const plan of plans)
      if (plan.dtype === dtype && plan.root === root && plan.to === to && plan.from === from) return plan;
    const elementCount = elementsOf(request, worldSize);
    const { select, hosts } = this.selectorOf(
      transport,
      group,
      combiningKinds.has(kind) && (dtype === "i32" || dtype === "u32"),
    );
    const { algorithm, segments } = select(kind, Math.max(request.input.byteLength, request.output.byteLength));
    const schedule = algorithm.schedule({
      rank,
      worldSize,
      elementCount,
      segments,
      ...(hosts && { hosts }),
      ...(root !== undefined && { root }),
      ...(to !== undefined && { to }),
      ...(from !== undefined && { from }),
    });
    const planned: CachedPlan = { schedule, algorithm: algorithm.name, dtype, root, to, from };
    plans.push(planned);
    return planned;
  }

  /**
   * Returns the algorithm selector of a group.
   *
   * @param anyOrder whether sums may be in any order, as for integers. If false, the preferred order applies.
   */
  private selectorOf(transport: Transport, group: number, anyOrder: boolean): Selector {
    const key = `${group} ${anyOrder}`;
    const known = this.selectors.get(key);
    if (known !== undefined) return known;
    const { rank, worldSize } = transport;
    const preference = this.preferenceOf(group);
    const select = algorithmSelector({
      worldSize,
      sharesMemory: Array.from({ length: worldSize }, (_, peer) => peer).every(
        (peer) => peer === rank || transport.sharesMemoryWith(peer),
      ),
      ...preference,
      ...(anyOrder && { order: "any" }),
    });
    const made = { select, hosts: preference.hosts };
    this.selectors.set(key, made);
    return made;
  }

  /**
   * Returns the world's settings for the choice of algorithms, restricted to a group: `hosts` contains only members of
   * the group, numbered by their rank in the group.
   */
  private preferenceOf(group: number): Preference {
    const { preference, control } = this.parts;
    if (group === 0 || preference.hosts === undefined) return preference;
    const members = control.membersOf(group);
    const hosts = preference.hosts.map((host) => host.map((rank) => members.indexOf(rank)).filter((rank) => rank >= 0));
    return { ...preference, hosts: hosts.filter((host) => host.length > 0) };
  }
}
