/** A stretch of memory and the time during which it is in use, both ends included. */
export interface Interval {
  readonly bytes: number;
  readonly begin: number;
  readonly end: number;
}

/** Offsets of intervals, in their order, and the bytes that they span together. */
export interface Packing {
  readonly offsets: readonly number[];
  readonly bytes: number;
}

/** Place intervals one after another, each into the smallest gap that it fits between those alive at the same time. */
const packInOrder = (intervals: readonly Interval[], order: readonly number[]): Packing => {
  const offsets = new Array<number>(intervals.length).fill(0);
  const placed: number[] = []; // ascending by offset
  let total = 0;
  for (const index of order) {
    const { bytes, begin, end } = intervals[index]!;
    if (bytes === 0) continue;
    let [best, bestGap, free] = [-1, Infinity, 0];
    for (const other of placed) {
      const neighbour = intervals[other]!;
      if (neighbour.begin > end || neighbour.end < begin) continue;
      const gap = offsets[other]! - free;
      if (gap >= bytes && gap < bestGap) [best, bestGap] = [free, gap];
      free = Math.max(free, offsets[other]! + neighbour.bytes);
    }
    const offset = best === -1 ? free : best;
    offsets[index] = offset;
    const at = placed.findIndex((other) => offsets[other]! > offset);
    placed.splice(at === -1 ? placed.length : at, 0, index);
    total = Math.max(total, offset + bytes);
  }
  return { offsets, bytes: total };
};

/**
 * Lay out intervals so that no two that are alive together overlap: greedy best fit, once by size and once by time, the smaller
 * packing wins (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, arXiv:2001.03288: by size is
 * within a few per cent of the bound on most networks).
 *
 * @param alignment offsets are multiples of it, bytes.
 * Cost: O(n²) for n intervals.
 */
export const packIntervals = (intervals: readonly Interval[], alignment: number): Packing => {
  const aligned = intervals.map((interval) => ({ ...interval, bytes: Math.ceil(interval.bytes / alignment) * alignment }));
  const order = aligned.map((_, index) => index);
  const bySize = packInOrder(
    aligned,
    order.toSorted((a, b) => aligned[b]!.bytes - aligned[a]!.bytes || aligned[a]!.begin - aligned[b]!.begin),
  );
  const byTime = packInOrder(
    aligned,
    order.toSorted((a, b) => aligned[a]!.begin - aligned[b]!.begin || aligned[b]!.bytes - aligned[a]!.bytes),
  );
  return byTime.bytes < bySize.bytes ? byTime : bySize;
};

/** The most bytes that are alive at one time: no packing can span less. */
export const mostAlive = (intervals: readonly Interval[], alignment: number): number => {
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
