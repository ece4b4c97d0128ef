import { type CollectiveError, CollectiveTimeoutError, RanksDisagreeError } from "@skein/collectives";
import { MpiTransferError } from "./errors.ts";
import type { Answer, Poster } from "./requests.ts";
import { demand, type MpiWorld } from "./world.ts";

/** What a rank waited for when a command of messages was answered. */
export interface AwaitedMessage {
  /** Of several, the answer says which one it is about. */
  readonly peer?: number;
  readonly tag: number;
  readonly byteLength: number;
}

/**
 * What the transport and the native collectives of one lane share: a communicator of its own, on which they keep their
 * order.
 */
export class MpiLane {
  readonly rank: number;
  readonly worldSize: number;
  readonly requests: Poster;
  readonly communicator: number;
  readonly timeoutMilliseconds: number;
  /** What a collective is called in errors, by its tag. */
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

  /** The first failure breaks the communicator: what is still in flight on it, nobody can tell. */
  fail(error: CollectiveError): CollectiveError {
    this.failure ??= error;
    return this.failure;
  }

  throwIfBroken(): void {
    if (this.failure !== undefined) throw this.failure;
  }

  /** Break the communicator where messages did not come, or are not what was to come. */
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
      // The lowest bit says that more parts follow. MPI may have room for fewer bits than our tags have.
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

/** Duplicate the world's communicator, one for each lane. Collective: all ranks do it, in the same order. */
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
