import { CollectiveError } from "../errors.ts";
import type { Walk } from "../execute.ts";
import type { Future } from "../transport/transport.ts";
import type { WorldConnection } from "../control-block/world-connection.ts";
import { RankLanes } from "../lanes/rank-lanes.ts";

/** A request in flight in one lane. A lane is the request queue of one priority. */
interface Running {
  readonly walk: Walk<number>;
  /**
   * Future that the request waits for. Undefined: the request has not started. `since` is the time at which the wait
   * began.
   */
  future: Future<unknown> | undefined;
  since: number;
}

/**
 * Runs `body`. A collective error only stops the companion, because the control block reports the error to the rank.
 * Other errors are thrown.
 */
const runUnlessFailed = (body: () => void): void => {
  try {
    body();
  } catch (error) {
    if (!(error instanceof CollectiveError)) throw error;
  }
};

/**
 * Main function of a companion thread: executes the rank's requests, and blocks until the world is closed. Each lane
 * has at most one request in flight. If the request of one lane waits for a peer, the next lane continues; higher
 * priorities run first.
 */
export const runCompanion = (connection: WorldConnection): void => {
  const { control, lanes } = new RankLanes(connection);
  const running = new Map<number, Running>();
  const urgentFirst = lanes.toReversed();
  const isOver = (): boolean => control.unusable;

  /**
   * Advances the request of one lane.
   *
   * @returns whether the request made progress.
   */
  const advance = ({ lane, executor }: (typeof lanes)[number]): boolean => {
    let current = running.get(lane.index);
    if (current === undefined) {
      if (lane.isIdle || !lane.tryLock()) return false;
      if (lane.isIdle) {
        lane.unlock(); // The waiting rank has already executed the request.
        return false;
      }
      current = { walk: executor.execute(lane.next()), future: undefined, since: 0 };
      running.set(lane.index, current);
    } else if (current.future !== undefined && !current.future.ready()) {
      if (performance.now() - current.since > control.timeoutMilliseconds) current.future.expire();
      return false;
    }
    try {
      const { done, value } = current.walk.next();
      if (done === true) {
        lane.finish(value);
        running.delete(lane.index);
        lane.unlock();
      } else {
        current.future = value as Future<unknown>; // Transports between threads return no promises.
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
      return current === undefined
        ? !lane.isIdle && !lane.isLocked
        : current.future === undefined || current.future.ready();
    });

  runUnlessFailed(() => {
    while (!isOver()) {
      if (urgentFirst.some(advance)) continue; // Start again at the highest priority.
      if (running.size === 0) {
        control.companionBusy = false;
        control.waitUntil(anyPosted, "request", Infinity);
      } else {
        control.companionBusy = true;
        // The timeout is short, so that the deadline of each request is checked often.
        control.waitUntil(canAdvance, "message", control.timeoutMilliseconds / 10);
      }
    }
  });
};
