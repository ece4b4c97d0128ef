import type { LanePosition } from "../streams/lane.ts";
import type { PlacedLane } from "../streams/streamed-records.ts";
import { batchLayout, type SampleSpecs } from "../records.ts";

/**
 * Indices of the words in the control block of `Slots`. The words `produced` and `consumed` count batches. The word
 * `closed` is 1 after the reader is closed.
 */
export const controlWord = { produced: 0, consumed: 1, closed: 2 } as const;

/** A ring buffer of batches in shared memory. Slot i mod `count` contains batch i. */
export interface Slots {
  readonly control: Int32Array<SharedArrayBuffer>;
  readonly bytes: Uint8Array<SharedArrayBuffer>;
  readonly slotBytes: number;
  readonly count: number;
  /** Number of images that came from the cache, for the batch in each slot. */
  readonly cached: Int32Array<SharedArrayBuffer>;
  /** Positions of this rank's stream lanes after a batch, for the batch in each slot. */
  readonly lanes: Float64Array<SharedArrayBuffer>;
}

/** Fields of a lane position, in storage order. */
const laneNames = [
  "shard",
  "offset",
  "skip",
  "block",
  "size",
  "drawn",
] as const satisfies readonly (keyof LanePosition)[];
const laneNumbers = 1 + laneNames.length;

/** Allocates the ring buffer of batches. @param numLanes Number of stream lanes read by this rank. */
export const makeSlots = (records: SampleSpecs, batchSize: number, count: number, numLanes: number): Slots => {
  const slotBytes = batchLayout(records, batchSize).totalBytes;
  return {
    control: new Int32Array(new SharedArrayBuffer(12)),
    bytes: new Uint8Array(new SharedArrayBuffer(slotBytes * count)),
    slotBytes,
    count,
    cached: new Int32Array(new SharedArrayBuffer(4 * count)),
    lanes: new Float64Array(new SharedArrayBuffer(8 * laneNumbers * numLanes * count)),
  };
};

export const slotOf = ({ bytes, slotBytes, count }: Slots, batch: number): Uint8Array => {
  const begin = (batch % count) * slotBytes;
  return bytes.subarray(begin, begin + slotBytes);
};

const lanesOf = ({ lanes, count }: Slots, batch: number): Float64Array => {
  const each = lanes.length / count;
  return lanes.subarray((batch % count) * each, ((batch % count) + 1) * each);
};

export const writeLanes = (slots: Slots, batch: number, lanes: readonly PlacedLane[]): void =>
  lanesOf(slots, batch).set(lanes.flatMap(({ lane, position }) => [lane, ...laneNames.map((name) => position[name])]));

export const readLanes = (slots: Slots, batch: number): PlacedLane[] => {
  const numbers = lanesOf(slots, batch);
  return Array.from({ length: numbers.length / laneNumbers }, (_, i) => {
    const [lane, ...position] = numbers.subarray(i * laneNumbers, (i + 1) * laneNumbers);
    return {
      lane: lane!,
      position: Object.fromEntries(laneNames.map((name, n) => [name, position[n]!])) as unknown as LanePosition,
    };
  });
};
