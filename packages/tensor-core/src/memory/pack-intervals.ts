/** Memory block to place: its size, and the time interval during which the block is in use, both ends included. */
export interface Interval {
  readonly bytes: number;
  readonly begin: number;
  readonly end: number;
}

/** Result of packing: slab and offset of each interval, in interval order, and each slab size in bytes. */
export interface Packing {
  readonly slabs: readonly number[];
  readonly offsets: readonly number[];
  readonly slabBytes: readonly number[];
}

const total = ({ slabBytes }: Packing): number => slabBytes.reduce((sum, bytes) => sum + bytes, 0);

/**
 * Returns the offset at which to place `interval`: the start of the smallest sufficient gap between the intervals alive
 * at the same time. If no gap is large enough, returns the end of the last of these intervals.
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

/** Places intervals in the given order, each in the first slab with enough free space. */
const packInOrder = (intervals: readonly Interval[], order: readonly number[], maxSlabBytes: number): Packing => {
  const offsets = new Array<number>(intervals.length).fill(0);
  const slabs = new Array<number>(intervals.length).fill(0);
  const placed: number[][] = [[]]; // indices of the placed intervals of each slab, ascending by offset
  const slabBytes = [0];
  for (const index of order) {
    const interval = intervals[index]!;
    if (interval.bytes === 0) continue;
    for (let slab = 0; ; slab++) {
      const others = (placed[slab] ??= []);
      const offset = bestOffset(intervals, others, offsets, interval);
      // An interval larger than a slab has a separate slab.
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
 * Assigns memory to intervals so that intervals alive at the same time do not overlap. Uses greedy best fit in two
 * orders, by size and by time, and returns the smaller packing. (Pisarchyk and Lee, "Efficient Memory Management for
 * Deep Neural Net Inference", 2020, arXiv:2001.03288: greedy by size is within a few per cent of the lower bound on
 * most networks.)
 *
 * @param alignment Alignment of offsets, bytes.
 * @param maxSlabBytes Maximum size of a slab, bytes. If exceeded, intervals are distributed over several slabs.
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

/** Computes the maximum number of bytes alive at one time: a lower bound for any packing. */
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
