import { WaitingEvents } from "./waiting-events.ts";

interface Reader<Event extends { readonly type: string }> {
  readonly waiting: WaitingEvents<Event>;
  wake: () => void;
}

/**
 * Things that happen, kept for whoever goes over them, from when they began to. Whoever reads more slowly than they
 * happen misses some, see `WaitingEvents`.
 */
export class EventStream<Event extends { readonly type: string }> {
  private readonly readers = new Set<Reader<Event>>();
  private readonly tellLost: (lost: string) => Event;

  /** @param tellLost makes the last event of a reader who has missed some, of words such as "12 steps". */
  constructor(tellLost: (lost: string) => Event) {
    this.tellLost = tellLost;
  }

  emit(event: Event): void {
    for (const reader of this.readers) {
      reader.waiting.add(event);
      reader.wake();
    }
  }

  /**
   * What happens from now on, in order. What is not asked for yet waits.
   *
   * @param over settles once nothing more happens; what it throws is thrown after the last event.
   * @param leave called where the reader stops before that. It resolves once all is over.
   */
  read(over: Promise<unknown>, leave: () => Promise<void>): AsyncGenerator<Event, void, undefined> {
    const reader: Reader<Event> = { waiting: new WaitingEvents(), wake: () => undefined };
    this.readers.add(reader);
    let isOver = false;
    const ended = over.then(
      () => undefined,
      () => undefined, // a reader is told, nobody else has to be
    );
    void ended.then(() => {
      isOver = true;
      reader.wake();
    });
    const { readers, tellLost } = this;
    return (async function* (): AsyncGenerator<Event, void, undefined> {
      try {
        for (;;) {
          for (let event = reader.waiting.take(); event !== undefined; event = reader.waiting.take()) yield event;
          if (isOver) break;
          await new Promise<void>((resolve) => (reader.wake = resolve));
        }
        const lost = reader.waiting.lostOnes;
        if (lost !== undefined) yield tellLost(lost);
        await over;
      } finally {
        readers.delete(reader);
        if (!isOver) await leave();
      }
    })();
  }
}
