import { BinaryHeap } from "@skein/tensor-core/backend";

interface Entry<T, E> {
  readonly at: T;
  readonly order: number;
  readonly event: E;
}

/** Events by time; those of one time in the order in which they came. O(log n) for each. */
export class EventQueue<T, E> {
  private readonly heap: BinaryHeap<Entry<T, E>>;
  private pushed = 0;

  constructor(compare: (a: T, b: T) => number) {
    this.heap = new BinaryHeap((a, b) => {
      const difference = compare(a.at, b.at);
      return difference < 0 || (difference === 0 && a.order < b.order);
    });
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
    return this.heap.first?.at;
  }

  push(at: T, event: E): void {
    this.heap.push({ at, order: this.pushed++, event });
  }

  /** Take the first one. */
  pop(): E | undefined {
    return this.heap.pop()?.event;
  }
}
