/** Events of a kind that wait at most, where their kind may be lost. */
export const mostWaiting = 1000;

/** Kinds that tell how a run goes: a later one says more. Of all other kinds none is ever lost. */
const passing: ReadonlySet<string> = new Set(["step", "note"]);

/**
 * Events on their way to somebody who may be slower than the run, which waits for nobody. They stay in order. Of steps
 * and of notes the newest `mostWaiting` are kept, and those that find no room are counted; starts, evaluations,
 * checkpoints and the end all arrive.
 *
 * Memory: 2000 events, and the evaluations and checkpoints that nobody has taken yet.
 */
export class WaitingEvents<Event extends { readonly type: string }> {
  /** By the order in which they happened. */
  private readonly waiting = new Map<number, Event>();
  /** Of each kind that may be lost, the keys of those that wait. */
  private readonly keysOf = new Map<string, Set<number>>();
  private readonly lost = new Map<string, number>();
  private next = 0;

  add(event: Event): void {
    const key = this.next++;
    this.waiting.set(key, event);
    const { type } = event;
    if (!passing.has(type)) return;
    let keys = this.keysOf.get(type);
    if (keys === undefined) this.keysOf.set(type, (keys = new Set()));
    keys.add(key);
    if (keys.size <= mostWaiting) return;
    const [oldest] = keys;
    keys.delete(oldest!);
    this.waiting.delete(oldest!);
    this.lost.set(type, (this.lost.get(type) ?? 0) + 1);
  }

  /** The oldest that waits, which waits no longer. */
  take(): Event | undefined {
    const [first] = this.waiting;
    if (first === undefined) return undefined;
    const [key, event] = first;
    this.waiting.delete(key);
    this.keysOf.get(event.type)?.delete(key);
    return event;
  }

  /** Let all that waits go, uncounted: nobody will take it. */
  clear(): void {
    this.waiting.clear();
    this.keysOf.clear();
  }

  /** What found no room, such as "12 steps and 1 note"; nothing where all did. */
  get lostOnes(): string | undefined {
    const counts = [...this.lost].map(([type, count]) => `${count} ${type}${count === 1 ? "" : "s"}`);
    return counts.length === 0 ? undefined : counts.join(" and ");
  }
}
