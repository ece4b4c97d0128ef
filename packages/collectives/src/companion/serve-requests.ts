import { CollectiveError } from "../errors.ts";
import { runWalk } from "../execute.ts";
import type { Future } from "../transport/transport.ts";
import type { ControlBlock } from "../control-block/control-block.ts";
import type { WorldConnection } from "../control-block/world-connection.ts";
import { type LaneTransports, RankLanes } from "../lanes/rank-lanes.ts";

/** Polls for a request for at most `pollingMilliseconds`. Returns whether a request was posted. */
const isNotifiedSoon = async (
  control: ControlBlock,
  seen: number,
  turn: (call: () => void) => void,
): Promise<boolean> => {
  const at = control.eventAt("request");
  const until = performance.now() + pollingMilliseconds;
  do {
    if (Atomics.load(control.words, at) !== seen) return true;
    await new Promise<void>((resolve) => turn(resolve));
  } while (performance.now() < until);
  return false;
};

const whenReady = async (control: ControlBlock, future: Future<unknown>): Promise<void> => {
  const deadline = performance.now() + control.timeoutMilliseconds;
  for (;;) {
    const seen = Atomics.load(control.words, control.eventAt("message"));
    if (future.ready()) return;
    control.throwIfUnusable(0);
    const left = deadline - performance.now();
    if (left <= 0) future.expire();
    await control.whenNotified("message", seen, left);
  }
};

/**
 * Maximum time that a companion polls for the next request before it sleeps. A rank that waits often posts the next
 * request within microseconds.
 */
const pollingMilliseconds = 0.5;

/**
 * Main function of a companion that owns sockets: executes the rank's requests, over transports that cannot block,
 * until the world is closed or fails. Each lane has at most one request in flight; lanes run concurrently.
 *
 * @param turn schedules a callback in the next turn of the event loop. Pass `turn` if the companion has a dedicated
 * core. The companion then polls for requests for a short time, because sleeping and waking would take longer than a
 * small request.
 * @returns after the world was closed.
 * @throws the failure, after reporting it to the ranks of this process.
 */
export const serveRequests = async (
  connection: WorldConnection,
  laneTransports: LaneTransports,
  turn?: (call: () => void) => void,
): Promise<void> => {
  const { control, lanes } = new RankLanes(connection, laneTransports);
  let failed: unknown;
  const busy = new Set<number>();

  const drain = async ({ lane, executor }: (typeof lanes)[number]): Promise<void> => {
    try {
      while (lane.isDue && !control.unusable) {
        const request = lane.next();
        try {
          lane.finish(await runWalk(executor.execute(request), (future) => whenReady(control, future)));
        } catch (error) {
          control.failWith(error, request.tag);
          throw error;
        }
      }
    } catch (error) {
      failed ??= error;
    } finally {
      busy.delete(lane.index);
      lane.unlock();
    }
  };

  for (;;) {
    const seen = Atomics.load(control.words, control.eventAt("request"));
    if (control.unusable) break;
    for (const entry of lanes.toReversed()) {
      // The rank may be executing the request in its own thread.
      if (!entry.lane.isDue || busy.has(entry.lane.index) || !entry.lane.tryLock()) continue;
      busy.add(entry.lane.index);
      void drain(entry);
    }
    if (turn !== undefined && (await isNotifiedSoon(control, seen, turn))) continue;
    await control.whenNotified("request", seen, Infinity);
  }
  const failure = control.failure() ?? failed;
  if (failure !== undefined && !(control.closed && failure instanceof CollectiveError)) throw failure;
};
