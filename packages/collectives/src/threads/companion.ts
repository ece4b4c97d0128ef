import { CollectiveError } from "../errors.ts";
import type { Walk } from "../execute.ts";
import type { Later } from "../transport/transport.ts";
import type { WorldConnection } from "./control.ts";
import { RankLanes } from "./rank-lanes.ts";

/** A request under way. */
interface Running {
  readonly walk: Walk<number>;
  /** What it waits for, and since when. */
  later: Later<unknown> | undefined;
  since: number;
}

/** Failures of collectives are told to the rank through the control block, so the companion just ends; errors of other kinds are thrown. */
const runUnlessFailed = (body: () => void): void => {
  try {
    body();
  } catch (error) {
    if (!(error instanceof CollectiveError)) throw error;
  }
};

/**
 * Carry out a rank's requests until the world is closed: the body of a companion thread. Blocks. Each lane has at most one request under
 * way; those of several lanes take turns whenever one waits for a peer, the urgent ones first.
 */
export const runCompanion = (connection: WorldConnection): void => {
  const { control, lanes } = new RankLanes(connection);
  const running = new Map<number, Running>();
  const urgentFirst = lanes.toReversed();
  const isOver = (): boolean => control.unusable;

  /** Let one lane go on. @returns whether it did. */
  const advance = ({ lane, carrier }: (typeof lanes)[number]): boolean => {
    let current = running.get(lane.index);
    if (current === undefined) {
      if (lane.isIdle || !lane.tryLock()) return false;
      if (lane.isIdle) {
        lane.unlock(); // the waiting rank has done it itself
        return false;
      }
      current = { walk: carrier.carry(lane.next()), later: undefined, since: 0 };
      running.set(lane.index, current);
    } else if (current.later !== undefined && !current.later.ready()) {
      if (performance.now() - current.since > control.timeoutMilliseconds) current.later.expire();
      return false;
    }
    try {
      const { done, value } = current.walk.next();
      if (done === true) {
        lane.finish(value);
        running.delete(lane.index);
        lane.unlock();
      } else {
        current.later = value as Later<unknown>; // transports between threads make no promises
        current.since = performance.now();
      }
    } catch (error) {
      control.failWith(error, lane.next().tag);
      throw error;
    }
    return true;
  };

  const anyPosted = (): boolean => lanes.some(({ lane }) => !lane.isIdle && !lane.isLocked);
  const canAdvance = (): boolean =>
    lanes.some(({ lane }) => {
      const current = running.get(lane.index);
      return current === undefined ? !lane.isIdle && !lane.isLocked : current.later === undefined || current.later.ready();
    });

  runUnlessFailed(() => {
    while (!isOver()) {
      if (urgentFirst.some(advance)) continue; // from the most urgent lane again
      if (running.size === 0) {
        control.companionBusy = false;
        control.waitUntil(anyPosted, "requests", Infinity);
      } else {
        control.companionBusy = true;
        // Bounded, so that the deadline of each request is looked at.
        control.waitUntil(canAdvance, "mail", control.timeoutMilliseconds / 10);
      }
    }
  });
};
