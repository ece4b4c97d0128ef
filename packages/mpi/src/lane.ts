import type { CollectiveError } from "@skein/collectives";
import type { Poster } from "./requests.ts";
import { demand, type MpiWorld } from "./world.ts";

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
