import { WaitingEvents } from "./waiting-events.ts";

interface Reader<Event extends { readonly type: string }> {
  readonly waiting: WaitingEvents<Event>;
  wake: () => void;
}

/**
 * Broadcasts events to readers. A reader receives the events emitted after it has started to read. A slow reader misses
 * some events; see `WaitingEvents`.
 */
export class EventStream<Event extends { readonly type: string }> {
  private readonly readers = new Set<Reader<Event>>();
  private readonly makeLostEvent: (lost: string) => Event;

  /**
   * Creates a stream without readers.
   * @param makeLostEvent Makes the last event of a reader that missed events, from a description such as "12 steps".
   */
  constructor(makeLostEvent: (lost: string) => Event) {
    this.makeLostEvent = makeLostEvent;
  }

  emit(event: Event): void {
    for (const reader of this.readers) {
      reader.waiting.add(event);
      reader.wake();
    }
  }

  /**
   * Reads events in order from now on. Events are queued until the reader requests them.
   *
   * @param finished Settles after the last event. If `finished` rejects, its error is thrown after the last event.
   * @param leave Called if the reader stops earlier. Resolves when the source of events has ended.
   */
  read(finished: Promise<unknown>, leave: () => Promise<void>): AsyncGenerator<Event, void, undefined> {
    const reader: Reader<Event> = { waiting: new WaitingEvents(), wake: () => undefined };
    this.readers.add(reader);
    let isOver = false;
    const ended = finished.then(
      () => undefined,
      () => undefined, // the reader receives the error, so it counts as handled here
    );
    void ended.then(() => {
      isOver = true;
      reader.wake();
    });
    const { readers, makeLostEvent } = this;
    return (async function* (): AsyncGenerator<Event, void, undefined> {
      try {
        for (;;) {
          for (let event = reader.waiting.take(); event !== undefined; event = reader.waiting.take()) yield event;
          if (isOver) break;
          await new Promise<void>((resolve) => (reader.wake = resolve));
        }
        const lost = reader.waiting.lostDescription;
        if (lost !== undefined) yield makeLostEvent(lost);
        await finished;
      } finally {
        readers.delete(reader);
        if (!isOver) await leave();
      }
    })();
  }
}
