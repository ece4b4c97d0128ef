import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { frameFlags } from "../wire/frame.ts";
import type { OutgoingFrame } from "./link.ts";
import { SendQueue, type SendQueueOptions } from "./send-queue.ts";

const bytes = (length: number): Uint8Array => Uint8Array.from({ length }, (_, i) => i * 7);

/** Returns a send queue whose link accepts frames only on request. */
const blocked = (options: Partial<SendQueueOptions> = {}) => {
  const frames: OutgoingFrame[] = [];
  const taken: (() => void)[] = [];
  const queue = new SendQueue({
    lanes: 4,
    frameBytes: 100,
    earlyBytes: 400,
    outstandingBytes: 200,
    write: (frame, handedOver, freed) => {
      frames.push(frame);
      taken.push(() => {
        handedOver();
        freed?.();
      });
    },
    ...options,
  });
  const grantAll = (amount: number): void => [0, 1, 2, 3].forEach((lane) => queue.grant(lane, amount));
  return { queue, frames, takeOne: () => taken.shift()?.(), grantAll };
};

test("an urgent message overtakes another only between two of its frames", () => {
  const { queue, frames, takeOne, grantAll } = blocked();
  grantAll(10_000);
  queue.push(0, 1, bytes(450), () => undefined);
  expect(frames.map(({ stream }) => stream)).toEqual([0, 0]); // The maximum number of outstanding frames.
  queue.push(1, 3, bytes(100), () => undefined);
  queue.push(3, 2, bytes(150), () => undefined);
  for (let i = 0; i < 9; i++) takeOne();
  expect(frames.map(({ stream, tag, sequence }) => [stream, tag, sequence])).toEqual([
    [0, 1, 0],
    [0, 1, 1],
    [3, 2, 0],
    [3, 2, 1],
    [1, 3, 0],
    [0, 1, 2],
    [0, 1, 3],
    [0, 1, 4],
  ]);
});

test("a lane without credit does not block others, and continues when it gets credit", () => {
  const { queue, frames, takeOne } = blocked({ outstandingBytes: 10_000 });
  queue.grant(0, 1000);
  queue.push(3, 1, bytes(100), () => undefined);
  queue.push(0, 2, bytes(100), () => undefined);
  expect(frames.map(({ stream }) => stream)).toEqual([0]);
  takeOne();
  queue.grant(3, 99);
  expect(frames).toHaveLength(1);
  queue.grant(3, 1);
  expect(frames.map(({ stream }) => stream)).toEqual([0, 3]);
});

test("bytes may change once the last frame was accepted, and not before", () => {
  const { queue, takeOne, grantAll } = blocked();
  grantAll(10_000);
  const settled: string[] = [];
  queue.push(0, 1, bytes(250), () => settled.push("first"));
  queue.push(0, 2, bytes(0), () => settled.push("empty"));
  takeOne();
  takeOne();
  expect(settled).toEqual([]);
  expect(queue.busy).toBe(true);
  takeOne();
  expect(settled).toEqual(["first"]);
  takeOne();
  expect(settled).toEqual(["first", "empty"]);
  expect(queue.busy).toBe(false);
});

test("a settled message may queue the next one in its callback", () => {
  const frames: OutgoingFrame[] = [];
  const queue: SendQueue = new SendQueue({
    lanes: 1,
    frameBytes: 10,
    earlyBytes: 1000,
    outstandingBytes: 20,
    write: (frame, handedOver, freed) => {
      frames.push(frame);
      handedOver(); // Links do not call this immediately, but the queue must allow an immediate call.
      freed?.();
    },
  });
  queue.grant(0, 10_000);
  queue.push(0, 1, bytes(25), () => queue.push(0, 2, bytes(5), () => undefined));
  expect(frames.map(({ tag, payload }) => [tag, payload.byteLength])).toEqual([
    [1, 10],
    [1, 10],
    [1, 5],
    [2, 5],
  ]);
});

describe("laws", () => {
  const messages = fc.array(fc.record({ lane: fc.nat(3), length: fc.nat(700) }), { maxLength: 20 });

  test("the frames of a lane are its messages split in order, with one last frame each", () => {
    fc.assert(
      fc.property(messages, fc.integer({ min: 1, max: 300 }), (list, frameBytes) => {
        const { queue, frames, takeOne, grantAll } = blocked({ frameBytes });
        grantAll(1e6);
        list.forEach(({ lane, length }, tag) => queue.push(lane, tag, bytes(length), () => undefined));
        while (queue.busy) takeOne();
        for (const lane of [0, 1, 2, 3]) {
          const own = frames.filter(({ stream }) => stream === lane);
          expect(own.map(({ sequence }) => sequence)).toEqual(own.map((_, i) => i));
          const expected = list.flatMap(({ lane: at, length }, tag) => {
            if (at !== lane) return [];
            const count = Math.max(1, Math.ceil(length / frameBytes));
            return Array.from({ length: count }, (_, i) => ({
              tag,
              last: i === count - 1,
              payload: [...bytes(length).subarray(i * frameBytes, (i + 1) * frameBytes)],
            }));
          });
          expect(
            own.map(({ tag, flags, payload }) => ({
              tag,
              last: (flags & frameFlags.last) !== 0,
              payload: [...payload],
            })),
          ).toEqual(expected);
        }
      }),
    );
  });

  test("never has more outstanding than allowed plus one frame, and never sends more than granted", () => {
    fc.assert(
      fc.property(messages, fc.infiniteStream(fc.nat(400)), (list, grants) => {
        let outstanding = 0;
        const sent = [0, 0, 0, 0];
        const granted = [0, 0, 0, 0];
        const taken: (() => void)[] = [];
        const queue = new SendQueue({
          lanes: 4,
          frameBytes: 100,
          earlyBytes: 400,
          outstandingBytes: 250,
          write: ({ stream, payload }, handedOver, freed) => {
            expect(outstanding).toBeLessThan(250);
            const charge = Math.max(64, payload.byteLength);
            outstanding += charge;
            sent[stream]! += charge;
            expect(sent[stream]).toBeLessThanOrEqual(granted[stream]!);
            taken.push(() => {
              outstanding -= charge;
              handedOver();
              freed?.();
            });
          },
        });
        list.forEach(({ lane, length }, tag) => queue.push(lane, tag, bytes(length), () => undefined));
        for (let turn = 0; queue.busy && turn < 2000; turn++) {
          const lane = turn % 4;
          const amount = grants.next().value as number;
          granted[lane]! += amount;
          queue.grant(lane, amount);
          taken.shift()?.();
        }
      }),
      { numRuns: 50 },
    );
  });
});
