import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { VirtualClock } from "../../test/network-clock.ts";
import { type EmulatedDirection, emulatedLinks } from "./emulated-links.ts";
import type { FrameHeader } from "../wire/frame.ts";
import type { Link, LinkReceiver, OutgoingFrame } from "./link.ts";

interface Arrival {
  readonly at: number;
  readonly tag: number;
  readonly payload: number[];
}

/** Returns an emulated link over an infinitely fast link that records written frames and their times. */
const emulated = (direction: EmulatedDirection, seed = 1, ownLatencySeconds = 0) => {
  const clock = new VirtualClock();
  const arrivals: Arrival[] = [];
  const calls: string[] = [];
  const inner: Link = {
    peer: 1,
    width: 3,
    open: () => undefined,
    write: ({ tag, payload }, handedOver, freed) => {
      arrivals.push({ at: clock.now(), tag, payload: [...payload] });
      handedOver?.();
      freed?.();
    },
    hurry: () => undefined,
    ping: () => calls.push("ping"),
    silence: () => 0,
    close: async () => void calls.push("close"),
    destroy: () => calls.push("destroy"),
  };
  const [link] = emulatedLinks([inner], { direction: () => direction, seed, clock, ownLatencySeconds });
  return { clock, link: link!, arrivals, calls };
};

const frame = (tag: number, length: number, type: "data" | "control" = "data"): OutgoingFrame => ({
  type,
  flags: 0,
  stream: 0,
  sequence: tag,
  tag,
  payload: new Uint8Array(length).fill(tag),
});

test("a frame arrives after its latency and its bytes, including the header, over the bandwidth; its bytes may change when it has left", () => {
  const { clock, link, arrivals } = emulated({ bytesPerSecond: 1_000_000, latencySeconds: 0.05 });
  const left: number[] = [];
  link.write(frame(1, 9968), () => left.push(clock.now()));
  clock.advance(100);
  expect(left).toEqual([10]); // 10,000 bytes at 1000 bytes/ms.
  expect(arrivals).toEqual([{ at: 60, tag: 1, payload: Array.from({ length: 9968 }, () => 1) }]);
});

test("links that share a line wait for each other's frames; others do not", () => {
  const clock = new VirtualClock();
  const arrivals: (readonly [peer: number, at: number])[] = [];
  const links = [1, 2, 3].map((peer) => ({
    peer,
    write: () => void arrivals.push([peer, clock.now()]),
  }));
  const emulatedOnes = emulatedLinks(links as unknown as readonly Link[], {
    direction: (peer) => ({ bytesPerSecond: 1_000_000, latencySeconds: 0.05, sharesLine: peer < 3 }),
    clock,
  });
  for (const link of emulatedOnes) link.write(frame(link.peer, 9968));
  emulatedOnes[0]!.write(frame(4, 9968));
  clock.advance(100);
  expect(arrivals).toEqual([
    [1, 60],
    [3, 60],
    [2, 70],
    [1, 80],
  ]);
});

describe("frames that arrive over links that share a line", () => {
  const headerOf = (tag: number, length: number, type: "data" | "control" = "data"): FrameHeader => {
    const { payload: _, ...header } = frame(tag, 0, type);
    return { ...header, length };
  };
  /** Returns two links that may share an incoming line, and functions that make their peers send and close. */
  const incoming = (sharesLine: boolean) => {
    const clock = new VirtualClock();
    const inner = new Map<number, LinkReceiver>();
    const events: (readonly [event: number | string, at: number])[] = [];
    const links = emulatedLinks(
      [1, 2].map((peer) => ({
        peer,
        open: (receiver: LinkReceiver) => void inner.set(peer, receiver),
        destroy: () => undefined,
      })) as unknown as readonly Link[],
      { direction: () => ({ bytesPerSecond: 1_000_000, sharesLine }), clock },
    );
    for (const link of links)
      link.open({
        limit: () => 0,
        target: () => new Uint8Array(0),
        frame: ({ tag }) => void events.push([tag, clock.now()]),
        torn: () => undefined,
        closed: () => void events.push([`${link.peer} closed`, clock.now()]),
      });
    const comes = (peer: number, tag: number, type?: "data" | "control"): void =>
      inner.get(peer)!.frame(headerOf(tag, type === "control" ? 0 : 9968, type), new Uint8Array(9968));
    return { clock, links, events, comes, closes: (peer: number) => inner.get(peer)!.closed(undefined) };
  };

  test("wait for each other if two peers send at once, but not if one peer sends at the line's speed", () => {
    for (const sharesLine of [true, false]) {
      const { clock, events, comes, closes } = incoming(sharesLine);
      for (let tag = 1; tag <= 3; tag++) {
        clock.advance(10);
        comes(1, tag);
      }
      clock.advance(10);
      comes(1, 4);
      comes(2, 5);
      comes(2, 6, "control");
      closes(2);
      clock.advance(100);
      const behind = sharesLine ? 50 : 40;
      const atOnce = [1, 2, 3, 4].map((tag) => [tag, 10 * tag]);
      expect(events.toSorted(([, a], [, b]) => a - b).filter(([event]) => event !== 6)).toEqual([
        ...atOnce,
        [5, behind],
        ["2 closed", behind],
      ]);
      expect(events).toContainEqual([6, 40]);
    }
  });

  test("are not reported after their link was destroyed", () => {
    const { clock, links, events, comes } = incoming(true);
    for (const [peer, tag] of [
      [1, 1],
      [2, 2],
      [1, 3],
    ] as const)
      comes(peer, tag);
    links[1]!.destroy();
    clock.advance(100);
    expect(events).toEqual([
      [1, 0],
      [3, 20],
    ]);
  });
});

test("reuses the copy of a frame only after the real link allows it to change", () => {
  const clock = new VirtualClock();
  const held: { readonly payload: Uint8Array; readonly freed: (() => void) | undefined }[] = [];
  const write: Link["write"] = ({ payload }, _, freed) => void held.push({ payload, freed });
  const inner = { peer: 1, write };
  const [link] = emulatedLinks([inner as unknown as Link], { direction: () => ({ bytesPerSecond: 1_000_000 }), clock });
  const send = (tag: number): void => {
    link!.write(frame(tag, 968));
    clock.advance(10);
  };
  send(1);
  send(2);
  held[0]!.freed!();
  send(3);
  send(4);
  expect(held[1]!.payload).toEqual(new Uint8Array(968).fill(2));
  expect(held[2]!.payload.buffer).toBe(held[0]!.payload.buffer);
  expect(held[3]!.payload).toEqual(new Uint8Array(968).fill(4));
});

test("frames follow one another on the line, and overlap in latency", () => {
  const { clock, link, arrivals } = emulated({ bytesPerSecond: 1_000_000, latencySeconds: 0.05 });
  for (const tag of [1, 2, 3]) link.write(frame(tag, 968));
  clock.advance(100);
  expect(arrivals.map(({ at }) => at)).toEqual([51, 52, 53]);
});

describe("a busy line carries its bandwidth exactly", () => {
  // A sender that writes the next frame when a frame has departed, like the send queue, with two frames in flight.
  test.each([0, 0.3, 1, 4])("with timers that fire %d ms late", (lateness) => {
    const { clock, link, arrivals } = emulated({ bytesPerSecond: 10_000_000, latencySeconds: 0.001 });
    let next = 0;
    const more = (): void => {
      if (next < 200) link.write(frame(next++, 9968), more);
    };
    more();
    more();
    clock.advance(10_000, lateness);
    expect(arrivals.map(({ tag }) => tag)).toEqual(Array.from({ length: 200 }, (_, i) => i));
    // 200 frames of 1 ms each, and 1 ms of latency. A late timer delays the end at most two times: at the departure and
    // at the arrival.
    expect(arrivals.at(-1)!.at).toBeGreaterThanOrEqual(201);
    expect(arrivals.at(-1)!.at).toBeLessThanOrEqual(201 + 2 * lateness);
  });
});

test("control frames do not wait behind data", () => {
  const { clock, link, arrivals } = emulated({ bytesPerSecond: 1000, latencySeconds: 0.5 });
  link.write(frame(1, 968));
  link.write(frame(2, 0, "control"));
  clock.advance(5000);
  expect(arrivals.map(({ at, tag }) => [tag, at])).toEqual([
    [2, 532],
    [1, 1500],
  ]);
});

test("jitter delays uniformly up to its setting, never out of order, and equally for the same seed", () => {
  const run = (seed: number): number[] => {
    const { clock, link, arrivals } = emulated({ latencySeconds: 0.1, jitterSeconds: 0.02 }, seed);
    for (let tag = 0; tag < 1000; tag++) {
      link.write(frame(tag, 10));
      clock.advance(100); // Sent far apart, so that no frame waits for another.
    }
    clock.advance(1000);
    expect(arrivals.map(({ tag }) => tag)).toEqual(Array.from({ length: 1000 }, (_, i) => i));
    return arrivals.map(({ at, tag }) => at - tag * 100 - 100);
  };
  const delays = run(5);
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...delays)).toBeLessThanOrEqual(20);
  // The mean of 1000 draws from [0, 20) has a standard deviation of 0.18.
  expect(Math.abs(delays.reduce((sum, delay) => sum + delay) / 1000 - 10)).toBeLessThan(0.75);
  expect(run(5)).toEqual(delays);
  expect(run(6)).not.toEqual(delays);
});

test("keeps the order for any bandwidth, latency and jitter", () => {
  fc.assert(
    fc.property(
      fc.double({ min: 1e3, max: 1e9, noNaN: true }),
      fc.double({ min: 0, max: 0.2, noNaN: true }),
      fc.double({ min: 0, max: 0.2, noNaN: true }),
      fc.array(fc.record({ length: fc.nat(500), rest: fc.nat(30) }), { maxLength: 30 }),
      (bytesPerSecond, latencySeconds, jitterSeconds, list) => {
        const { clock, link, arrivals } = emulated({ bytesPerSecond, latencySeconds, jitterSeconds });
        let sum = 0;
        list.forEach(({ length, rest }, tag) => {
          link.write(frame(tag, length));
          sum += length + 32;
          clock.advance(rest);
        });
        clock.advance(100_000);
        expect(arrivals.map(({ tag }) => tag)).toEqual(list.map((_, tag) => tag));
        if (list.length > 0)
          expect(arrivals.at(-1)!.at).toBeGreaterThanOrEqual(
            (sum / bytesPerSecond) * 1000 + latencySeconds * 1000 - 1e-6,
          );
      },
    ),
  );
});

test("after the cable is cut nothing is sent, not even signs of life, and senders do not block", () => {
  const { clock, link, arrivals, calls } = emulated({ bytesPerSecond: 1_000_000, lostAfterSeconds: 0.0105 });
  const left: number[] = [];
  for (const tag of [1, 2, 3]) link.write(frame(tag, 4968), () => left.push(tag));
  link.ping();
  clock.advance(1000);
  link.ping();
  link.write(frame(4, 0, "control"));
  clock.advance(1000);
  expect(arrivals.map(({ tag }) => tag)).toEqual([1, 2]);
  expect(left).toEqual([1, 2, 3]);
  expect(calls).toEqual(["ping"]);
});

test("a goodbye arrives after all frames on the line", async () => {
  const { clock, link, arrivals, calls } = emulated({ bytesPerSecond: 1000, latencySeconds: 1 });
  link.write(frame(1, 968));
  link.write(frame(2, 0, "control"));
  const closed = link.close();
  clock.advance(1999, 0.5);
  expect([arrivals.map(({ tag }) => tag), calls]).toEqual([[2], []]);
  clock.advance(2, 0.5); // Late timers do not change the order.
  await closed;
  expect([arrivals.map(({ tag }) => tag), calls]).toEqual([[2, 1], ["close"]]);
});

test("subtracts the latency of the real link", () => {
  const { clock, link, arrivals } = emulated({ latencySeconds: 0.05 }, 1, 0.02);
  link.write(frame(1, 10));
  clock.advance(100);
  expect(arrivals[0]!.at).toBeCloseTo(30, 9);
  expect(() => emulated({ latencySeconds: 0.01 }, 1, 0.02)).toThrow(/use at least the latency of the real link, 0.02/);
});

test("rejects invalid settings", () => {
  expect(() => emulated({ bytesPerSecond: 0 })).toThrow(/bytesPerSecond of an emulated link cannot be 0/);
  expect(() => emulated({ latencySeconds: -1 })).toThrow(/latencySeconds of an emulated link cannot be -1/);
  expect(() => emulated({ latencySeconds: Number.NaN })).toThrow(/latencySeconds/);
  expect(() => emulated({ jitterSeconds: Number.NaN })).toThrow(/jitterSeconds/);
});
