import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { type SentFrame, Unacknowledged } from "./unacknowledged.ts";

const large = 65_537;
const push = (queue: Unacknowledged, payload: Uint8Array, freed?: () => void): SentFrame =>
  queue.push({ type: "data", flags: 0, stream: 0, sequence: 0, tag: 0, payload }, undefined, freed);

test("frees a small payload when the system has it, and a large one when the peer has it; keeps both unchanged", () => {
  const queue = new Unacknowledged();
  const [small, big] = [new Uint8Array(100).fill(1), new Uint8Array(large).fill(2)];
  const freed: string[] = [];
  const sent = [push(queue, small, () => freed.push("small")), push(queue, big, () => freed.push("large"))];
  expect(freed).toEqual([]);
  for (const each of sent) queue.markWritten(each);
  expect(freed).toEqual(["small"]);
  small.fill(9);
  expect(queue.frames.map(({ frame }) => [frame.payload.byteLength, frame.payload[0]])).toEqual([
    [100, 1],
    [large, 2],
  ]);
  queue.acknowledge(2);
  expect(freed).toEqual(["small", "large"]);
  expect(queue.frames).toEqual([]);
});

test("frees a large payload by a copy if a thread waits for it and the peer is slow", () => {
  vi.useFakeTimers();
  try {
    const queue = new Unacknowledged();
    const payload = new Uint8Array(large).fill(3);
    const freed = vi.fn();
    const sent = push(queue, payload, freed);
    queue.hurry();
    vi.advanceTimersByTime(50);
    expect(freed).not.toHaveBeenCalled(); // The system still reads the payload.
    queue.markWritten(sent);
    expect(freed).toHaveBeenCalledOnce();
    payload.fill(9);
    expect(queue.frames[0]!.frame.payload.every((byte) => byte === 3)).toBe(true);
    queue.acknowledge(1);
    expect(freed).toHaveBeenCalledOnce();
    queue.clear();
  } finally {
    vi.useRealTimers();
  }
});

test("for any sequence of sending and acknowledging, keeps the unacknowledged frames in order and frees each once", () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant("push" as const), bytes: fc.constantFrom(0, 1, 65_536, large), lent: fc.boolean() }),
    fc.record({ do: fc.constant("hand over" as const), which: fc.nat(10) }),
    fc.record({ do: fc.constant("acknowledge" as const), many: fc.nat(5) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const queue = new Unacknowledged();
      const freed: number[] = [];
      const lent = new Set<number>();
      const all: SentFrame[] = [];
      let acknowledged = 0;
      for (const each of steps) {
        if (each.do === "push") {
          const number = all.length;
          if (each.lent) lent.add(number);
          all.push(
            push(queue, new Uint8Array(each.bytes).fill(number), each.lent ? () => void freed.push(number) : undefined),
          );
        } else if (each.do === "hand over") {
          const sent = queue.frames[each.which];
          if (sent !== undefined) queue.markWritten(sent);
        } else {
          const count = acknowledged + each.many;
          if (count > all.length)
            expect(() => queue.acknowledge(count)).toThrow(/frames, but only \d+ to \d+ are possible/);
          else queue.acknowledge((acknowledged = count));
        }
        expect(queue.frames).toEqual(all.slice(acknowledged));
        for (let number = 0; number < acknowledged; number++) expect(freed.includes(number)).toBe(lent.has(number));
        expect(new Set(freed).size).toBe(freed.length);
        for (const [i, { frame }] of queue.frames.entries())
          if (frame.payload.byteLength > 0) expect(frame.payload[0]).toBe((acknowledged + i) & 255);
      }
    }),
  );
});
