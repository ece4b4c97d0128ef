import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EventStream } from "./event-stream.ts";

/** Something that is over when it is told so. */
const work = () => {
  const { promise: over, resolve, reject } = Promise.withResolvers<void>();
  return { over, end: resolve, fail: reject };
};

describe("a stream of events", () => {
  test("gives each reader all that happens from when it began to read, in order, however slowly it reads", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.integer(), { maxLength: 12 }),
        fc.nat({ max: 12 }),
        async (schedule, events, from) => {
          const stream = new EventStream<number>();
          const { over, end } = work();
          const read = async (): Promise<number[]> => {
            const seen: number[] = [];
            for await (const event of stream.read(over, () => Promise.reject(new Error("left")))) {
              seen.push(event);
              await schedule.schedule(Promise.resolve(), "slow reader");
            }
            return seen;
          };
          const first = read();
          let second: Promise<number[]> | undefined;
          const emitting = (async () => {
            for (const [i, event] of events.entries()) {
              if (i === from) second = read();
              stream.emit(event);
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

  test("throws what the work threw, once all that had happened was read", async () => {
    const stream = new EventStream<string>();
    const { over, fail } = work();
    const reader = stream.read(over, () => Promise.resolve());
    stream.emit("first");
    fail(new Error("gone"));
    await over.catch(() => undefined);
    expect(await reader.next()).toEqual({ done: false, value: "first" });
    await expect(reader.next()).rejects.toThrow("gone");
    expect(await reader.next()).toEqual({ done: true, value: undefined });
  });

  test("tells whoever works that its reader left, and waits until that is over; not where it was over before", async () => {
    for (const isOver of [false, true]) {
      const stream = new EventStream<number>();
      const { over, end } = work();
      const told: string[] = [];
      const reader = stream.read(over, async () => {
        told.push("leaves");
        await Promise.resolve();
        told.push("saved");
      });
      stream.emit(1);
      stream.emit(2);
      if (isOver) end();
      if (isOver) await over;
      for await (const event of reader) if (event === 1) break;
      expect(told).toEqual(isOver ? [] : ["leaves", "saved"]);
      stream.emit(3); // nobody hears of it
      expect(await reader.next()).toEqual({ done: true, value: undefined });
    }
  });

  test("lets what stopping fails with reach the loop that was left", async () => {
    const stream = new EventStream<number>();
    stream.emit(0);
    const reader = stream.read(new Promise(() => undefined), () => Promise.reject(new Error("not saved")));
    stream.emit(1);
    const loop = async (): Promise<void> => {
      for await (const event of reader) if (event === 1) break;
    };
    await expect(loop()).rejects.toThrow("not saved");
  });
});
