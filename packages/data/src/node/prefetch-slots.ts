import type { LanePosition } from "../streams/lane.ts";
import type { PlacedLane } from "../streams/streamed-records.ts";
import { batchLayout, type SampleSpecs } from "../records.ts";

/** Words of the control block. `produced` and `consumed` count batches. */
export const controlWord = { produced: 0, consumed: 1, closed: 2 } as const;

/** A ring of batch slots in shared memory: slot i mod `slots` holds batch i. */
export interface Slots {
  readonly control: Int32Array<SharedArrayBuffer>;
  readonly bytes: Uint8Array<SharedArrayBuffer>;
  readonly slotBytes: number;
  readonly count: number;
  /** Of the batch in each slot, how many images were decoded before, and kept. */
  readonly kept: Int32Array<SharedArrayBuffer>;
  /** Where this rank's lanes of a stream stand behind the batch in each slot. */
  readonly lanes: Float64Array<SharedArrayBuffer>;
}

/** Numbers of a lane. */
const laneNames = [
  "shard",
  "offset",
  "skip",
  "block",
  "size",
  "drawn",
] as const satisfies readonly (keyof LanePosition)[];
const laneNumbers = 1 + laneNames.length;

/** @param numLanes of a stream that this rank reads. */
export const makeSlots = (records: SampleSpecs, batchSize: number, count: number, numLanes: number): Slots => {
  const slotBytes = batchLayout(records, batchSize).totalBytes;
  return {
    control: new Int32Array(new SharedArrayBuffer(12)),
    bytes: new Uint8Array(new SharedArrayBuffer(slotBytes * count)),
    slotBytes,
    count,
    kept: new Int32Array(new SharedArrayBuffer(4 * count)),
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
