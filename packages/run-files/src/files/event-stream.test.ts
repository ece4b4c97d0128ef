import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EventStream } from "./event-stream.ts";
import { maxWaiting } from "./waiting-events.ts";

interface Numbered {
  readonly type: string;
  readonly at: number;
}
const step = (at: number): Numbered => ({ type: "step", at });
const streamOf = (): EventStream<Numbered> => new EventStream((lost) => ({ type: `missed ${lost}`, at: -1 }));

/** Returns work that ends when it is stopped. */
const work = () => {
  const { promise: over, resolve, reject } = Promise.withResolvers<void>();
  return { over, end: resolve, fail: reject };
};

describe("a stream of events", () => {
  test("gives each reader all events from the start of reading, in order, however slowly it reads", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.integer(), { maxLength: 12 }),
        fc.nat({ max: 12 }),
        async (schedule, events, from) => {
          const stream = streamOf();
          const { over, end } = work();
          const read = async (): Promise<number[]> => {
            const seen: number[] = [];
            for await (const event of stream.read(over, () => Promise.reject(new Error("left")))) {
              seen.push(event.at);
              await schedule.schedule(Promise.resolve(), "slow reader");
            }
            return seen;
          };
          const first = read();
          let second: Promise<number[]> | undefined;
          const emitting = (async () => {
            for (const [i, event] of events.entries()) {
              if (i === from) second = read();
              stream.emit(step(event));
              await schedule.schedule(Promise.resolve(), "next event");
            }
            end();
          })();
          await schedule.waitFor(Promise.all([first, emitting]));
          expect(await first).toEqual(events);
          if (second !== undefined) expect(await schedule.waitFor(second)).toEqual(events.slice(from));
        },
      ),
    );
  });

  test("throws the error of the work, after all events were read", async () => {
    const stream = streamOf();
    const { over, fail } = work();
    const reader = stream.read(over, () => Promise.resolve());
    stream.emit(step(1));
    fail(new Error("gone"));
    await over.catch(() => undefined);
    expect(await reader.next()).toEqual({ done: false, value: step(1) });
    await expect(reader.next()).rejects.toThrow("gone");
    expect(await reader.next()).toEqual({ done: true, value: undefined });
  });

  test("stops the work when its reader leaves, and waits for its end; not if it has ended before", async () => {
    for (const isOver of [false, true]) {
      const stream = streamOf();
      const { over, end } = work();
      const calls: string[] = [];
      const reader = stream.read(over, async () => {
        calls.push("leaves");
        await Promise.resolve();
        calls.push("saved");
      });
      stream.emit(step(1));
      stream.emit(step(2));
      if (isOver) end();
      if (isOver) await over;
      for await (const event of reader) if (event.at === 1) break;
      expect(calls).toEqual(isOver ? [] : ["leaves", "saved"]);
      stream.emit(step(3)); // no reader receives this event
      expect(await reader.next()).toEqual({ done: true, value: undefined });
    }
  });

  test("throws an error of stopping from the loop that was left", async () => {
    const stream = streamOf();
    stream.emit(step(0));
    const reader = stream.read(new Promise(() => undefined), () => Promise.reject(new Error("not saved")));
    stream.emit(step(1));
    const loop = async (): Promise<void> => {
      for await (const event of reader) if (event.at === 1) break;
    };
    await expect(loop()).rejects.toThrow("not saved");
  });

  test("keeps the newest steps and all other events for a slow reader, and reports the missed ones last", async () => {
    for (const missed of [0, 1, 12]) {
      const stream = streamOf();
      const { over, end } = work();
      const reader = stream.read(over, () => Promise.resolve());
      const judged = { type: "evaluation", at: 0 };
      stream.emit(judged);
      for (let at = 1; at <= maxWaiting + missed; at++) stream.emit(step(at));
      end();
      await over;
      const seen: Numbered[] = [];
      for await (const event of reader) seen.push(event);
      const newest = Array.from({ length: maxWaiting }, (_, i) => step(missed + 1 + i));
      const missedEvents = missed === 0 ? [] : [{ type: `missed ${missed} step${missed === 1 ? "" : "s"}`, at: -1 }];
      expect(seen).toEqual([judged, ...newest, ...missedEvents]);
    }
  });

  test("an error of the work is thrown after missed events are reported", async () => {
    const stream = streamOf();
    const { over, fail } = work();
    const reader = stream.read(over, () => Promise.resolve());
    for (let at = 0; at <= maxWaiting; at++) stream.emit(step(at));
    fail(new Error("gone"));
    let last: Numbered | undefined;
    const loop = async (): Promise<void> => {
      for await (const event of reader) last = event;
    };
    await expect(loop()).rejects.toThrow("gone");
    expect(last).toEqual({ type: "missed 1 step", at: -1 });
  });
});
