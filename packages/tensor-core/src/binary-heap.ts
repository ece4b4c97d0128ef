/** Entries of which the first in an order is taken first. O(log n) for each that comes or goes. */
export class BinaryHeap<T> {
  private readonly isBefore: (a: T, b: T) => boolean;
  private readonly entries: T[] = [];

  /** @param isBefore which of two goes first; of equals any. */
  constructor(isBefore: (a: T, b: T) => boolean) {
    this.isBefore = isBefore;
  }

  get length(): number {
    return this.entries.length;
  }

  /** The next to be taken; undefined where there is none. */
  get first(): T | undefined {
    return this.entries[0];
  }

  push(entry: T): void {
    const { entries } = this;
    let at = entries.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.isBefore(entry, entries[parent]!)) break;
      entries[at] = entries[parent]!;
      at = parent;
    }
    entries[at] = entry;
  }

  /** Take the first. */
  pop(): T | undefined {
    const { entries } = this;
    const [first, last] = [entries[0], entries.pop()];
    if (last === undefined || entries.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= entries.length) break;
      if (child + 1 < entries.length && this.isBefore(entries[child + 1]!, entries[child]!)) child++;
      if (!this.isBefore(entries[child]!, last)) break;
      entries[at] = entries[child]!;
      at = child;
    }
    entries[at] = last;
    return first;
  }
}
