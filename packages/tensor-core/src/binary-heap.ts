/**
 * Binary heap: a priority queue with a user-defined order. Push and pop cost O(log n).
 *
 * @example
 * ```ts
 * const heap = new BinaryHeap<number>((a, b) => a < b);
 * for (const value of [3, 1, 2]) heap.push(value);
 * console.log(heap.pop()); // 1
 * ```
 */
export class BinaryHeap<T> {
  private readonly isBefore: (a: T, b: T) => boolean;
  private readonly entries: T[] = [];

  /**
   * Creates an empty heap.
   *
   * @param isBefore Returns whether `a` is popped before `b`. Entries of equal priority are popped in any order.
   */
  constructor(isBefore: (a: T, b: T) => boolean) {
    this.isBefore = isBefore;
  }

  get length(): number {
    return this.entries.length;
  }

  /** Next entry to pop, which stays in the heap; undefined if the heap is empty. */
  get first(): T | undefined {
    return this.entries[0];
  }

  push(entry: T): void {
    const { entries } = this;
    let index = entries.length;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.isBefore(entry, entries[parent]!)) break;
      entries[index] = entries[parent]!;
      index = parent;
    }
    entries[index] = entry;
  }

  /** Removes and returns the first entry; undefined if the heap is empty. */
  pop(): T | undefined {
    const { entries } = this;
    const [first, last] = [entries[0], entries.pop()];
    if (last === undefined || entries.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= entries.length) break;
      if (child + 1 < entries.length && this.isBefore(entries[child + 1]!, entries[child]!)) child++;
      if (!this.isBefore(entries[child]!, last)) break;
      entries[index] = entries[child]!;
      index = child;
    }
    entries[index] = last;
    return first;
  }
}
