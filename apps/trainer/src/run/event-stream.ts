/** Things that happen, kept for whoever goes over them, from when they began to. */
export class EventStream<Event> {
  private readonly readers = new Set<{ readonly waiting: Event[]; wake: () => void }>();

  emit(event: Event): void {
    for (const reader of this.readers) {
      reader.waiting.push(event);
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
    const reader = { waiting: [] as Event[], wake: (): void => undefined };
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
    const { readers } = this;
    return (async function* (): AsyncGenerator<Event, void, undefined> {
      try {
        for (;;) {
          // All at once: to take the first of many off a list moves all others.
          while (reader.waiting.length > 0) yield* reader.waiting.splice(0);
          if (isOver) break;
          await new Promise<void>((resolve) => (reader.wake = resolve));
        }
        await over;
      } finally {
        readers.delete(reader);
        if (!isOver) await leave();
      }
    })();
  }
}
