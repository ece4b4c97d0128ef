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
}

export const makeSlots = (records: SampleSpecs, batchSize: number, count: number): Slots => {
  const slotBytes = batchLayout(records, batchSize).totalBytes;
  return {
    control: new Int32Array(new SharedArrayBuffer(12)),
    bytes: new Uint8Array(new SharedArrayBuffer(slotBytes * count)),
    slotBytes,
    count,
    kept: new Int32Array(new SharedArrayBuffer(4 * count)),
  };
};

export const slotOf = ({ bytes, slotBytes, count }: Slots, batch: number): Uint8Array => {
  const begin = (batch % count) * slotBytes;
  return bytes.subarray(begin, begin + slotBytes);
};
