/** A memory range and the time interval during which it is in use, both ends included. */
export interface Interval {
  readonly bytes: number;
  readonly begin: number;
  readonly end: number;
}

/** Slab and offset of each interval, in the order of the intervals, and the bytes of each slab. */
export interface Packing {
  readonly slabs: readonly number[];
  readonly offsets: readonly number[];
  readonly slabBytes: readonly number[];
}

const total = ({ slabBytes }: Packing): number => slabBytes.reduce((sum, bytes) => sum + bytes, 0);

/**
 * Offset of the smallest gap that `interval` fits into, among intervals alive at the same time, or the end of them all.
 */
const bestOffset = (
  intervals: readonly Interval[],
  placed: readonly number[],
  offsets: readonly number[],
  interval: Interval,
): number => {
  let [best, bestGap, free] = [-1, Infinity, 0];
  for (const other of placed) {
    const neighbour = intervals[other]!;
    if (neighbour.begin > interval.end || neighbour.end < interval.begin) continue;
    const gap = offsets[other]! - free;
    if (gap >= interval.bytes && gap < bestGap) [best, bestGap] = [free, gap];
    free = Math.max(free, offsets[other]! + neighbour.bytes);
  }
  return best === -1 ? free : best;
};

/** Place intervals one after another, each in the first slab with enough room. */
const packInOrder = (intervals: readonly Interval[], order: readonly number[], maxSlabBytes: number): Packing => {
  const offsets = new Array<number>(intervals.length).fill(0);
  const slabs = new Array<number>(intervals.length).fill(0);
  const placed: number[][] = [[]]; // per slab, ascending by offset
  const slabBytes = [0];
  for (const index of order) {
    const interval = intervals[index]!;
    if (interval.bytes === 0) continue;
    for (let slab = 0; ; slab++) {
      const others = (placed[slab] ??= []);
      const offset = bestOffset(intervals, others, offsets, interval);
      // An interval larger than a slab gets its own slab.
      if (others.length > 0 && offset + interval.bytes > maxSlabBytes) continue;
      offsets[index] = offset;
      slabs[index] = slab;
      const at = others.findIndex((other) => offsets[other]! > offset);
      others.splice(at === -1 ? others.length : at, 0, index);
      slabBytes[slab] = Math.max(slabBytes[slab] ?? 0, offset + interval.bytes);
      break;
    }
  }
  return { slabs, offsets, slabBytes };
};

/**
 * Lay out intervals so that no two overlap while alive at the same time: greedy best fit, once ordered by size and once
 * by time; the smaller packing wins (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference",
 * 2020, arXiv:2001.03288: ordered by size it is within a few per cent of the lower bound on most networks).
 *
 * @param alignment alignment of offsets, bytes.
 * @param maxSlabBytes maximum size of one allocation; intervals are spread over several slabs.
 * Cost: O(n²) for n intervals.
 */
export const packIntervals = (
  intervals: readonly Interval[],
  alignment: number,
  maxSlabBytes: number = Infinity,
): Packing => {
  const aligned = intervals.map((interval) => ({
    ...interval,
    bytes: Math.ceil(interval.bytes / alignment) * alignment,
  }));
  const order = aligned.map((_, index) => index);
  const bySize = packInOrder(
    aligned,
    order.toSorted((a, b) => aligned[b]!.bytes - aligned[a]!.bytes || aligned[a]!.begin - aligned[b]!.begin),
    maxSlabBytes,
  );
  const byTime = packInOrder(
    aligned,
    order.toSorted((a, b) => aligned[a]!.begin - aligned[b]!.begin || aligned[b]!.bytes - aligned[a]!.bytes),
    maxSlabBytes,
  );
  return total(byTime) < total(bySize) ? byTime : bySize;
};

/** Maximum bytes that are alive at one time: a lower bound of any packing. */
export const maxAlive = (intervals: readonly Interval[], alignment: number): number => {
  const changes = new Map<number, number>();
  const change = (time: number, bytes: number): void => void changes.set(time, (changes.get(time) ?? 0) + bytes);
  for (const { bytes, begin, end } of intervals) {
    const aligned = Math.ceil(bytes / alignment) * alignment;
    change(begin, aligned);
    change(end + 1, -aligned);
  }
  let [alive, most] = [0, 0];
  for (const [, bytes] of [...changes].sort(([a], [b]) => a - b)) {
    alive += bytes;
    most = Math.max(most, alive);
  }
  return most;
};
