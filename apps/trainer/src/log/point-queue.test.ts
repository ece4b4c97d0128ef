import fc from "fast-check";
import { expect, test } from "vitest";
import { MlflowFault, type MlflowPoint, maxPoints } from "./mlflow-client.ts";
import { PointQueue } from "./point-queue.ts";

const pointsOf = (count: number, from = 0): MlflowPoint[] =>
  Array.from({ length: count }, (_, i) => ({ key: "train/loss", value: 1, step: from + i, timestamp: 0 }));

test("every point is sent once, in order, or counted as lost, whatever the server does", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 2500 }), { maxLength: 6 }),
      fc.array(fc.constantFrom("takes", "takes", "is away", "refuses"), { maxLength: 12 }),
      async (sizes, moods) => {
        const sent: number[] = [];
        let [asked, notes] = [0, 0];
        const queue = new PointQueue({
          every: 1,
          note: () => void notes++,
          send: async (points) => {
            expect(points.length).toBeLessThanOrEqual(maxPoints);
            await Promise.resolve();
            const mood = moods[asked++] ?? "takes";
            if (mood !== "takes") throw new MlflowFault(mood, mood === "refuses");
            sent.push(...points.map(({ step }) => step));
          },
        });
        let total = 0;
        for (const size of sizes) {
          queue.add(pointsOf(size, total));
          total += size;
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
        await queue.end(1000);
        expect(sent.length + queue.lost).toBe(total);
        expect(sent).toEqual([...new Set(sent)].toSorted((a, b) => a - b));
        expect(notes).toBe(queue.fault === undefined ? 0 : 1);
      },
    ),
    { numRuns: 60 },
  ));

test("while the server is unavailable the newest points are kept, up to the capacity", async () => {
  let isAway = true;
  const sent: MlflowPoint[] = [];
  const queue = new PointQueue({
    every: 60_000,
    note: () => {},
    send: async (points) => {
      await Promise.resolve();
      if (isAway) throw new MlflowFault("away", false);
      sent.push(...points);
    },
  });
  for (let from = 0; from < 120_000; from += 100) queue.add(pointsOf(100, from));
  isAway = false;
  await queue.end(1000);
  expect(sent.length + queue.lost).toBe(120_000);
  expect(sent.length).toBeLessThan(52_000);
  expect(sent.at(-1)!.step).toBe(119_999);
});

test("pending requests at the end of a run are awaited", async () => {
  let isAsked = (): void => {};
  const asked = new Promise<void>((resolve) => (isAsked = resolve));
  const send = async (): Promise<void> => {
    isAsked();
    await new Promise((resolve) => setTimeout(resolve, 20));
  };
  const queue = new PointQueue({ every: 1, note: () => {}, send });
  queue.add(pointsOf(10));
  await asked;
  await queue.end(10_000);
  expect(queue.lost).toBe(0);
});

test("a server that is available at the end of a run gets all points, even if it was unavailable before; otherwise it is tried three times", async () => {
  for (const comesBack of [0, 1, 2, 3]) {
    const [begun, first] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let asked = 0;
    const queue = new PointQueue({
      every: 1,
      note: () => {},
      send: async () => {
        begun.resolve();
        if (asked++ === 0) return first.promise;
        if (asked - 2 < comesBack) throw new MlflowFault("away", false);
      },
    });
    queue.add(pointsOf(10));
    await begun.promise;
    const ended = queue.end(10_000);
    first.reject(new MlflowFault("away", false));
    await ended;
    expect([queue.lost, asked]).toEqual(comesBack === 3 ? [10, 4] : [0, 2 + comesBack]);
  }
});

test("a server that never answers is awaited up to the time limit", async () => {
  const queue = new PointQueue({ every: 60_000, note: () => {}, send: () => new Promise<never>(() => {}) });
  queue.add(pointsOf(10));
  await queue.end(20);
  expect(queue.lost).toBe(10);
});
