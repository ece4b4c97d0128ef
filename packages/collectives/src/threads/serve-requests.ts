import { CollectiveError } from "../errors.ts";
import { carry } from "../execute.ts";
import type { Later } from "../transport/transport.ts";
import type { Bell, Control, WorldConnection } from "./control.ts";
import { type Carriage, RankLanes } from "./rank-lanes.ts";

/** Wait for a bell without blocking. */
const whenRung = async (control: Control, bell: Bell, seen: number, milliseconds: number): Promise<void> => {
  const { async, value } = Atomics.waitAsync(control.words, control.bellAt(bell), seen, milliseconds);
  if (async) await value;
};

/** Look whether the requests' bell rings within a while. */
const isRungSoon = async (control: Control, seen: number, turn: (call: () => void) => void): Promise<boolean> => {
  const at = control.bellAt("requests");
  const until = performance.now() + lookingMilliseconds;
  do {
    if (Atomics.load(control.words, at) !== seen) return true;
    await new Promise<void>((resolve) => turn(resolve));
  } while (performance.now() < until);
  return false;
};

const whenReady = async (control: Control, later: Later<unknown>): Promise<void> => {
  const deadline = performance.now() + control.timeoutMilliseconds;
  for (;;) {
    const seen = Atomics.load(control.words, control.bellAt("mail"));
    if (later.ready()) return;
    control.throwIfUnusable(0);
    const left = deadline - performance.now();
    if (left <= 0) later.expire();
    await whenRung(control, "mail", seen, left);
  }
};

/** How long a companion looks for the next request before it sleeps: a rank that waits often posts again within microseconds. */
const lookingMilliseconds = 0.5;

/**
 * Carry out a rank's requests until the world is closed or fails, over transports that cannot block: the body of a companion that holds
 * sockets. Each lane has at most one request under way, and the lanes run beside each other.
 *
 * @param turn calls back from the event loop's next turn; given where a companion has a core that nobody computes on. It then looks for
 * requests for a while, where sleeping and being woken would take longer than a small request.
 * @returns when the world was closed. @throws the failure, after telling it to the ranks of this process.
 */
export const serveRequests = async (connection: WorldConnection, carriage: Carriage, turn?: (call: () => void) => void): Promise<void> => {
  const { control, lanes } = new RankLanes(connection, carriage);
  let failed: unknown;
  const busy = new Set<number>();

  const drain = async ({ lane, carrier }: (typeof lanes)[number]): Promise<void> => {
    try {
      while (!lane.isIdle && !control.unusable) {
        const request = lane.next();
        try {
          lane.finish(await carry(carrier.carry(request), (later) => whenReady(control, later)));
        } catch (error) {
          control.failWith(error, request.tag);
          throw error;
        }
      }
    } catch (error) {
      failed ??= error;
    } finally {
      busy.delete(lane.index);
    }
  };

  for (;;) {
    const seen = Atomics.load(control.words, control.bellAt("requests"));
    if (control.unusable) break;
    for (const entry of lanes.toReversed()) {
      if (entry.lane.isIdle || busy.has(entry.lane.index)) continue;
      busy.add(entry.lane.index);
      void drain(entry);
    }
    if (turn !== undefined && (await isRungSoon(control, seen, turn))) continue;
    await whenRung(control, "requests", seen, Infinity);
  }
  const failure = control.failure() ?? failed;
  if (failure !== undefined && !(control.closed && failure instanceof CollectiveError)) throw failure;
};
