import { BinaryHeap } from "@skein/tensor-core/backend";

interface Entry<T, E> {
  readonly at: T;
  readonly order: number;
  readonly event: E;
}

/**
 * Priority queue of events, ordered by time; events with equal time are ordered by insertion. Cost: O(log n) per
 * operation.
 */
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

  /** Number of events inserted so far. */
  get count(): number {
    return this.pushed;
  }

  /** Time of the earliest event; undefined if the queue is empty. */
  get nextAt(): T | undefined {
    return this.heap.first?.at;
  }

  push(at: T, event: E): void {
    this.heap.push({ at, order: this.pushed++, event });
  }

  /**
   * Removes the earliest event.
   * @returns the event; undefined if the queue is empty.
   */
  pop(): E | undefined {
    return this.heap.pop()?.event;
  }
}
