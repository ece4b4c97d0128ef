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

/**
 * Carry out a rank's requests until the world is closed or fails, over transports that cannot block: the body of a companion that holds
 * sockets. Each lane has at most one request under way, and the lanes run beside each other.
 *
 * @returns when the world was closed. @throws the failure, after telling it to the ranks of this process.
 */
export const serveRequests = async (connection: WorldConnection, carriage: Carriage): Promise<void> => {
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
    await whenRung(control, "requests", seen, Infinity);
  }
  const failure = control.failure() ?? failed;
  if (failure !== undefined && !(control.closed && failure instanceof CollectiveError)) throw failure;
};
