import { type CollectiveError, CollectiveTimeoutError, RanksDisagreeError } from "@skein/collectives";
import { MpiTransferError } from "./errors.ts";
import type { Answer, Poster } from "./requests.ts";
import { demand, type MpiWorld } from "./world.ts";

/** Message for which a rank waits. Used in the error message if the addon responds with a failure. */
export interface AwaitedMessage {
  /**
   * Sender of the message. Absent: the message may come from several senders, and the response names the sender that
   * caused the failure.
   */
  readonly peer?: number;
  readonly tag: number;
  readonly byteLength: number;
}

/**
 * State shared by the transport and the native collectives of one lane. The lane has a separate communicator, on which
 * the order of calls is fixed.
 */
export class MpiLane {
  readonly rank: number;
  readonly worldSize: number;
  readonly requests: Poster;
  readonly communicator: number;
  readonly timeoutMilliseconds: number;
  /** Returns the name of the collective with a tag, for error messages. */
  readonly nameOf: (tag: number) => string;
  private failure: CollectiveError | undefined;

  constructor(
    { rank, size, requests }: Pick<MpiWorld, "rank" | "size"> & { readonly requests: Poster },
    communicator: number,
    timeoutMilliseconds: number,
    nameOf: (tag: number) => string,
  ) {
    this.rank = rank;
    this.worldSize = size;
    this.requests = requests;
    this.communicator = communicator;
    this.timeoutMilliseconds = timeoutMilliseconds;
    this.nameOf = nameOf;
  }

  /**
   * Records the first failure. After a failure the communicator is unusable, because the state of its calls in flight
   * is unknown.
   */
  fail(error: CollectiveError): CollectiveError {
    this.failure ??= error;
    return this.failure;
  }

  throwIfBroken(): void {
    if (this.failure !== undefined) throw this.failure;
  }

  /**
   * Checks the response to a command. If messages did not arrive, or differ from the awaited messages, the lane fails
   * and the method throws.
   */
  check(answer: Answer, awaited: AwaitedMessage): void {
    if (answer.outcome !== "done") throw this.fail(this.explain(answer, awaited));
    this.throwIfBroken();
  }

  private explain({ outcome, message, values }: Answer, awaited: AwaitedMessage): CollectiveError {
    const { peer = values.at(-1) ?? -1, tag, byteLength } = awaited;
    const place = { rank: this.rank, peer, collective: this.nameOf(tag) };
    if (outcome === "timeout") return new CollectiveTimeoutError(place, this.timeoutMilliseconds);
    if (outcome === "mismatch") {
      const [arrived, arrivedTag, part, expectedTag] = values as [number, number, number, number];
      // The lowest bit of an MPI tag means that more parts follow. MPI may have fewer tag bits than this package's
      // tags.
      const other =
        arrivedTag >>> 1 !== expectedTag >>> 1
          ? ` for another collective (MPI tag ${arrivedTag}, not ${expectedTag})`
          : "";
      const piece =
        part === byteLength && ((arrivedTag ^ expectedTag) & 1) === 0 ? "" : ` in a part of a message of ${byteLength}`;
      return new RanksDisagreeError(place, `rank ${peer} sent ${arrived} bytes${other}, ${part} were expected${piece}`);
    }
    return new MpiTransferError(place, message);
  }
}

/**
 * Duplicates the world's communicator for each lane. Collective: all ranks must call this function, in the same order.
 */
export const openLanes = async (
  world: MpiWorld,
  count: number,
  timeoutMilliseconds: number,
  nameOf: (tag: number) => string,
): Promise<MpiLane[]> => {
  const lanes: MpiLane[] = [];
  for (let i = 0; i < count; i++) {
    const { values } = await demand(world.requests, "duplicating a communicator", { kind: "duplicate" });
    lanes.push(new MpiLane(world, values[0]!, timeoutMilliseconds, nameOf));
  }
  return lanes;
};
