import { ControlBlock } from "../src/control-block/control-block.ts";
import { controlBytes, sleepersWord } from "../src/control-block/layout.ts";
import type { WorldConnection } from "../src/control-block/world-connection.ts";
import type { CollectiveRequest } from "@skein/tensor-core/backend";
import type { Walk } from "../src/execute.ts";
import type { PostedRequest } from "../src/lanes/lane.ts";
import { RankLanes } from "../src/lanes/rank-lanes.ts";
import type { WakeEvent } from "../src/control-block/layout.ts";
import { tagOf } from "../src/control-block/tag.ts";
import type { Future } from "../src/transport/transport.ts";
import { reserveParts } from "../src/transport/thread-exchange.ts";

// The threads of a world as coroutines of one thread. Lanes, control block, transports and walks are real; only the
// scheduling is controlled, at every point at which another thread could be scheduled. A coroutine sleeps until an
// event as in `ControlBlock.waitUntil`, but without a timeout: after a missing notification, every coroutine of the
// world sleeps.

/** A point at which a test coroutine may be preempted, or at which the coroutine sleeps until an event. */
type Pause = { readonly event: WakeEvent; readonly control: ControlBlock; readonly ready: () => boolean } | undefined;
type Coroutine = Generator<Pause, void>;

/** Action of a rank: start a request, or wait for a started request, by its index among the requests of this rank. */
export type Act = { readonly start: CollectiveRequest; readonly group?: number } | { readonly wait: number };

/** Chooses which of `count` runnable coroutines continues. */
export type Choose = (count: number, lastIsAmongThem: number) => number;

export interface InterleavedWorld {
  readonly memory: WebAssembly.Memory;
  /** Creates a group, as `split` does on each rank of the group. */
  group(number: number, members: readonly number[]): void;
  /**
   * Runs the actions of all ranks.
   *
   * @throws Error on a deadlock.
   */
  run(acts: readonly (readonly Act[])[], choose: Choose): void;
}

export const interleavedWorld = (worldSize: number, bytes: number): InterleavedWorld => {
  const pages = Math.ceil(bytes / 65_536);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages + 1024, shared: true });
  const control = new SharedArrayBuffer(controlBytes(worldSize));
  const exchangeParts = reserveParts(memory, worldSize);
  const ranks = Array.from({ length: worldSize }, (_, rank) => rank);
  const connection = (rank: number): WorldConnection => ({
    control,
    memory,
    kernels: "none",
    rank,
    worldSize,
    localRanks: ranks,
    companionOnly: false,
    timeoutMilliseconds: 1e9,
    spins: 0,
    preference: {},
    ...(exchangeParts !== undefined && { exchangeParts }),
  });

  function* sleep(own: ControlBlock, event: WakeEvent, ready: () => boolean): Coroutine {
    if (!ready()) yield { event, control: own, ready };
  }

  function* computes(rank: number, acts: readonly Act[]): Coroutine {
    const { control: own, lanes } = new RankLanes(connection(rank));
    const started: { readonly lane: number; readonly sequence: number }[] = [];
    let held: { readonly lane: number; readonly request: PostedRequest } | undefined;
    const postHeld = (): void => {
      if (held !== undefined) lanes[held.lane]!.lane.post(held.request);
      held = undefined;
    };
    function* perform(walk: Walk<number>): Generator<Pause, number> {
      for (let step = walk.next(); ; step = walk.next()) {
        if (step.done === true) return step.value;
        yield* sleep(own, "message", (step.value as Future<unknown>).ready);
      }
    }
    const numbers = new Map<string, number>();
    for (const act of acts) {
      yield undefined;
      if ("start" in act) {
        const { start: request, group = 0 } = act;
        const lane = request.priority ?? 0;
        const number = (numbers.get(`${lane} ${group}`) ?? 0) + 1;
        numbers.set(`${lane} ${group}`, number);
        const posted = { ...request, tag: tagOf(number, request.kind, group) };
        postHeld();
        yield undefined;
        const mayHold = request.awaited === true && lanes[lane]!.lane.isIdle;
        if (mayHold) held = { lane, request: posted };
        started.push({ lane, sequence: mayHold ? lanes[lane]!.lane.nextSequence : lanes[lane]!.lane.post(posted) });
        continue;
      }
      const { lane, executor } = lanes[started[act.wait]!.lane]!;
      const { sequence } = started[act.wait]!;
      yield undefined;
      if (held?.lane === lane.index && lane.nextSequence === sequence && lane.tryLock()) {
        const request = lane.unposted(held.request);
        held = undefined;
        yield undefined;
        const sent = yield* perform(executor.execute(request));
        yield undefined;
        lane.finishUnposted(sent);
        continue;
      }
      postHeld();
      while (!lane.has(sequence)) {
        yield undefined;
        if (!lane.tryLock()) {
          yield* sleep(own, "done", () => lane.has(sequence) || !lane.isLocked);
          continue;
        }
        yield undefined;
        while (!lane.has(sequence)) {
          const sent = yield* perform(executor.execute(lane.next()));
          yield undefined;
          lane.finish(sent);
          yield undefined;
        }
        lane.unlock();
      }
    }
  }

  function* accompanies(rank: number): Coroutine {
    const { control: own, lanes } = new RankLanes(connection(rank));
    const running = new Map<number, { readonly walk: Walk<number>; future: Future<unknown> | undefined }>();
    const canAdvance = (): boolean =>
      lanes.some(({ lane }) => {
        const current = running.get(lane.index);
        return current === undefined
          ? !lane.isIdle && !lane.isLocked
          : current.future === undefined || current.future.ready();
      });
    while (!own.closed) {
      let advanced = false;
      for (const { lane, executor } of lanes.toReversed()) {
        yield undefined;
        let current = running.get(lane.index);
        if (current === undefined) {
          if (lane.isIdle || !lane.tryLock()) continue;
          yield undefined;
          if (lane.isIdle) {
            lane.unlock();
            continue;
          }
          current = { walk: executor.execute(lane.next()), future: undefined };
          running.set(lane.index, current);
        } else if (current.future !== undefined && !current.future.ready()) continue;
        const { done, value } = current.walk.next();
        yield undefined;
        if (done === true) {
          lane.finish(value);
          running.delete(lane.index);
          yield undefined;
          lane.unlock();
        } else current.future = value as Future<unknown>;
        advanced = true;
        break;
      }
      if (advanced) continue;
      own.companionBusy = running.size > 0;
      yield undefined;
      yield* sleep(own, running.size > 0 ? "message" : "request", () => own.closed || canAdvance());
    }
  }

  return {
    memory,
    group: (number, members) => {
      for (const rank of members) new ControlBlock(connection(rank)).writeGroup(number, members, `group ${number}`);
    },
    run: (acts, choose) => {
      interface Thread {
        readonly name: string;
        readonly body: Coroutine;
        pause: Pause;
        seen: number;
        /** Whether the coroutine has registered itself as sleeping. */
        counted: boolean;
        /** Whether the coroutine has read the event, but not checked the condition again. */
        rechecks: boolean;
        computes: boolean;
      }
      const threads: Thread[] = ranks.flatMap((rank) => [
        {
          name: `rank ${rank}`,
          body: computes(rank, acts[rank]!),
          pause: undefined,
          seen: 0,
          counted: false,
          rechecks: false,
          computes: true,
        },
        {
          name: `companion ${rank}`,
          body: accompanies(rank),
          pause: undefined,
          seen: 0,
          counted: false,
          rechecks: false,
          computes: false,
        },
      ]);
      const awake = ({ pause, seen, rechecks }: Thread): boolean =>
        pause === undefined ||
        rechecks ||
        Atomics.load(pause.control.words, pause.control.eventAt(pause.event)) !== seen;
      let living = threads;
      let last: Thread | undefined;
      for (;;) {
        if (living.every((thread) => !thread.computes)) return;
        const able = living.filter(awake);
        if (able.length === 0)
          throw new Error(
            `deadlock: ${living.map(({ name, pause }) => `${name} waits for ${pause!.event}${pause!.ready() ? ", without a notification" : ""}`).join("; ")}`,
          );
        const thread: Thread = able[choose(able.length, last === undefined ? -1 : able.indexOf(last))]!;
        last = thread;
        if (thread.pause !== undefined) {
          // As in `waitUntil`: the coroutine first registers itself, then reads the event, then checks the condition.
          const { control: own, event, ready } = thread.pause;
          const at = own.eventAt(event);
          if (!thread.counted) {
            Atomics.add(own.words, at + sleepersWord, 1);
            thread.counted = true;
            continue;
          }
          const seen = Atomics.load(own.words, at);
          if (thread.seen !== seen) {
            thread.seen = seen;
            thread.rechecks = true;
            continue;
          }
          thread.rechecks = false;
          if (!ready()) continue;
          Atomics.sub(own.words, at + sleepersWord, 1);
          thread.counted = false;
        }
        const { done, value } = thread.body.next();
        if (done === true) living = living.filter((other) => other !== thread);
        else {
          thread.pause = value ?? undefined;
          if (value !== undefined) thread.seen = Number.NaN; // not asleep before it has checked once more
        }
      }
    },
  };
};
