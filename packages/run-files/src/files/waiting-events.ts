/** Maximum number of waiting events of each type whose events may be dropped. */
export const maxWaiting = 1000;

/**
 * Event types that may be dropped, because a later event of the same type has newer information. Events of other types
 * are never dropped.
 */
const droppableTypes: ReadonlySet<string> = new Set(["step", "note"]);

/**
 * Queue of events for a reader that may be slower than the run. The run never waits for the reader. Events keep their
 * order. The queue keeps the newest `maxWaiting` steps and the newest `maxWaiting` notes, and counts dropped events.
 * Starts, evaluations, checkpoints and the end are never dropped.
 *
 * Memory: 2000 events, and all unread evaluations and checkpoints.
 */
export class WaitingEvents<Event extends { readonly type: string }> {
  /** Waiting events by sequence number. */
  private readonly waiting = new Map<number, Event>();
  /** Sequence numbers of the waiting events of each droppable type. */
  private readonly keysOf = new Map<string, Set<number>>();
  private readonly lostByType = new Map<string, number>();
  private next = 0;

  add(event: Event): void {
    const key = this.next++;
    this.waiting.set(key, event);
    const { type } = event;
    if (!droppableTypes.has(type)) return;
    let keys = this.keysOf.get(type);
    if (keys === undefined) this.keysOf.set(type, (keys = new Set()));
    keys.add(key);
    if (keys.size <= maxWaiting) return;
    const [oldest] = keys;
    keys.delete(oldest!);
    this.waiting.delete(oldest!);
    this.lostByType.set(type, (this.lostByType.get(type) ?? 0) + 1);
  }

  /** Removes and returns the oldest waiting event. Undefined: the queue is empty. */
  take(): Event | undefined {
    const [first] = this.waiting;
    if (first === undefined) return undefined;
    const [key, event] = first;
    this.waiting.delete(key);
    this.keysOf.get(event.type)?.delete(key);
    return event;
  }

  /** Removes all waiting events without counting them as lost, because no reader is left. */
  clear(): void {
    this.waiting.clear();
    this.keysOf.clear();
  }

  /** Description of the dropped events, such as "12 steps and 1 note". Undefined: no event was dropped. */
  get lostDescription(): string | undefined {
    const counts = [...this.lostByType].map(([type, count]) => `${count} ${type}${count === 1 ? "" : "s"}`);
    return counts.length === 0 ? undefined : counts.join(" and ");
  }
}
