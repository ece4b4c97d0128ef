/** Events by time; those of one time in the order in which they came. A binary heap: O(log n) for each. */
export class EventQueue<T, E> {
  private readonly compare: (a: T, b: T) => number;
  private readonly heap: { readonly at: T; readonly order: number; readonly event: E }[] = [];
  private pushed = 0;

  constructor(compare: (a: T, b: T) => number) {
    this.compare = compare;
  }

  get length(): number {
    return this.heap.length;
  }

  /** How many have ever come. */
  get count(): number {
    return this.pushed;
  }

  /** When the first one is due; undefined where there is none. */
  get nextAt(): T | undefined {
    return this.heap[0]?.at;
  }

  push(at: T, event: E): void {
    const { heap } = this;
    const entry = { at, order: this.pushed++, event };
    let i = heap.length;
    for (; i > 0; ) {
      const parent = (i - 1) >> 1;
      if (!this.isBefore(entry, heap[parent]!)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = entry;
  }

  /** Take the first one. */
  pop(): E | undefined {
    const { heap } = this;
    const [first, last] = [heap[0], heap.pop()];
    if (first === undefined || last === undefined || heap.length === 0) return first?.event;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && this.isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!this.isBefore(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
    return first.event;
  }

  private isBefore(
    a: { readonly at: T; readonly order: number },
    b: { readonly at: T; readonly order: number },
  ): boolean {
    const difference = this.compare(a.at, b.at);
    return difference < 0 || (difference === 0 && a.order < b.order);
  }
}
