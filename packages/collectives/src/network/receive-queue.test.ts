import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { MessageMemory } from "../message-memory.ts";
import { type FrameHeader, frameFlags } from "../wire/frame.ts";
import type { LinkCodec, OutgoingFrame } from "./link.ts";
import { ReceiveQueue } from "./receive-queue.ts";
import { SendQueue } from "./send-queue.ts";

/** Returns memory that counts its allocations. */
const counted = () => {
  const out = new Set<Uint8Array>();
  let most = 0;
  const memory: MessageMemory = {
    take: (byteLength) => {
      const bytes = new Uint8Array(byteLength).fill(0xee);
      out.add(bytes);
      most = Math.max(
        most,
        [...out].reduce((sum, { byteLength: length }) => sum + length, 0),
      );
      return bytes;
    },
    give: (bytes) => {
      if (!out.delete(bytes)) throw new Error("memory was freed twice, or was never allocated");
    },
  };
  return { memory, out: () => out.size, most: () => most };
};

const disagree = (difference: string): never => {
  throw new Error(`disagree: ${difference}`);
};

/** Run-length codec for repeated bytes. `encode` returns undefined if the result would not be smaller. */
const runs: LinkCodec = {
  encode: (bytes) =>
    bytes.byteLength > 2 && bytes.every((byte) => byte === bytes[0]) ? Uint8Array.of(bytes[0]!, 1) : undefined,
  decode: (coded, target) => target.fill(coded[0]!),
};

const headerOf = ({ payload, ...frame }: OutgoingFrame): FrameHeader => ({ ...frame, length: payload.byteLength });

/**
 * Delivers a frame to the receive queue, like a frame reader. `meanwhile` is called after the queue has returned the
 * target memory, and before the payload is written.
 */
const land = (incoming: ReceiveQueue, frame: OutgoingFrame, meanwhile: () => void = () => undefined): void => {
  const header = headerOf(frame);
  const target = header.length === 0 ? undefined : incoming.target(header);
  meanwhile();
  target?.set(frame.payload);
  incoming.frame(header);
};

/**
 * Delivers half of a frame, then simulates a broken connection. `meanwhile` is called before the break. The frame must
 * be delivered again.
 */
const tear = (incoming: ReceiveQueue, frame: OutgoingFrame, meanwhile: () => void): void => {
  const header = headerOf(frame);
  incoming
    .target(header)
    .subarray(0, header.length / 2)
    .fill(0xdd);
  meanwhile();
  incoming.forget(header);
};

const contents = (length: number, seed: number): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => (seed % 3 === 0 ? seed : (i * 31 + seed * 17) & 255));

const flow = { frameBytes: 100, earlyBytes: 400 };

/** Returns a sender and a receive queue connected by `width` sockets. Any socket may deliver its next frame first. */
const pair = (width: number, codec?: LinkCodec) => {
  const sockets: OutgoingFrame[][] = Array.from({ length: width }, () => []);
  let next = 0;
  const taken: (() => void)[] = [];
  const queue = new SendQueue({
    ...flow,
    lanes: 1,
    outstandingBytes: 1e9,
    codec,
    write: (frame, handedOver, freed) => {
      sockets[next++ % width]!.push({ ...frame, payload: frame.payload.slice() });
      taken.push(() => {
        handedOver();
        freed?.();
      });
    },
  });
  const held = counted();
  let completed = 0;
  const incoming = new ReceiveQueue({
    ...flow,
    memory: held.memory,
    codec,
    grant: (bytes) => queue.grant(0, bytes),
    complete: () => (completed += 1),
    disagree,
  });
  queue.grant(0, flow.earlyBytes);
  return { queue, incoming, sockets, held, completed: () => completed };
};

describe("laws, over 1 to 3 sockets that deliver frames in any order, some interrupted at first, with and without a codec", () => {
  test("every message arrives unchanged and in order, whenever it is requested; memory stays below the credit and is freed", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(900), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 1, max: 3 }),
        fc.boolean(),
        fc.infiniteStream(fc.nat(1000)),
        (lengths, width, coded, choices) => {
          const { queue, incoming, sockets, held, completed } = pair(width, coded ? runs : undefined);
          const choose = (): number => choices.next().value as number;
          lengths.forEach((length, tag) => queue.push(0, tag, contents(length, tag), () => undefined));
          const received: Uint8Array[] = [];
          let waiting: Uint8Array | undefined;
          const ask = (): void => {
            if (waiting !== undefined || received.length === lengths.length) return;
            const length = lengths[received.length]!;
            const kept = choose() % 2 === 0 ? incoming.takeEarly(received.length, length) : undefined;
            if (kept !== undefined) {
              received.push(kept.slice());
              held.memory.give(kept);
              return;
            }
            const target = new Uint8Array(length).fill(0xcc);
            if (incoming.post(received.length, target)) received.push(target);
            else waiting = target;
          };
          for (let turn = 0; received.length < lengths.length; turn++) {
            expect(turn, "the simulation ends").toBeLessThan(2000);
            const ready = sockets.filter((frames) => frames.length > 0);
            if (choose() % 3 === 0 || ready.length === 0) ask();
            else {
              const before = completed();
              const socket = ready[choose() % ready.length]!;
              if (choose() % 5 === 0 && socket[0]!.payload.byteLength > 0) {
                tear(incoming, socket[0]!, () => (choose() % 4 === 0 ? ask() : undefined));
                continue;
              }
              const frame = socket.shift()!;
              land(incoming, frame, () => (choose() % 4 === 0 ? ask() : undefined));
              if (completed() > before) {
                received.push(waiting!);
                waiting = undefined;
              }
            }
            // Memory of early frames, plus one coded frame per socket.
            expect(held.most()).toBeLessThanOrEqual(flow.earlyBytes + width * flow.frameBytes);
          }
          received.forEach((bytes, tag) => expect(bytes, `message ${tag}`).toEqual(contents(lengths[tag]!, tag)));
          expect(held.out()).toBe(0);
        },
      ),
      { numRuns: 500 },
    );
  });
});

const frame = (sequence: number, length: number, more: Partial<OutgoingFrame> = {}): OutgoingFrame => ({
  type: "data",
  flags: frameFlags.last,
  stream: 0,
  sequence,
  tag: 1,
  payload: new Uint8Array(length),
  ...more,
});
const alone = () => {
  const held = counted();
  const incoming = new ReceiveQueue({
    ...flow,
    memory: held.memory,
    grant: () => undefined,
    complete: () => undefined,
    disagree,
  });
  return { incoming, held };
};

describe("a sender that violates the protocol", () => {
  test("without credit is rejected before memory is allocated", () => {
    const { incoming, held } = alone();
    for (let i = 0; i < 4; i++) land(incoming, frame(i, 100));
    expect(() => land(incoming, frame(4, 1))).toThrow(/unrequested bytes, 400 are allowed/);
    expect(held.most()).toBe(400);
  });

  test("is charged for empty messages, too", () => {
    const { incoming } = alone();
    const flood = (): void => {
      for (let i = 0; i < 7; i++) land(incoming, frame(i, 0));
    };
    expect(flood).toThrow(/7 unrequested empty messages/);
  });

  test.each([
    ["requested", true],
    ["early", false],
  ])("is rejected for a repeated frame, %s", (_, asked) => {
    const { incoming } = alone();
    if (asked) incoming.post(1, new Uint8Array(250));
    land(incoming, frame(0, 100, { flags: 0 }));
    expect(() => land(incoming, frame(0, 100, { flags: 0 }))).toThrow(/frame 0 of lane 0 came twice/);
  });

  test("is rejected for a coded frame if the rank has no codec", () => {
    const { incoming } = alone();
    incoming.post(1, new Uint8Array(50));
    expect(() => land(incoming, frame(0, 10, { flags: frameFlags.last | frameFlags.coded }))).toThrow(
      /rank without a codec/,
    );
  });
});

describe.each([
  ["that was requested", true],
  ["that arrived early", false],
])("a message %s and differs from the expected one is rejected", (_, asked) => {
  test.each([
    ["another tag", 50, frame(0, 50, { tag: 2 }), /collective 2 came where one of collective 1 was expected/],
    ["shorter", 50, frame(0, 40), /has 40 bytes, 50 were expected/],
    ["longer", 50, frame(0, 60), /has 60 bytes, 50 were expected/],
    ["whole frames shorter", 250, frame(0, 100), /ended after 100 bytes, 250 were expected/],
    ["whole frames longer", 100, frame(0, 100, { flags: 0 }), /has more than the expected 100 bytes/],
    ["empty instead", 50, frame(0, 0), /has 0 bytes, 50 were expected/],
    ["not empty", 0, frame(0, 50), /has 50 bytes, 0 were expected/],
  ])("%s", (_name, length, sent, message) => {
    const { incoming } = alone();
    const meet = (): void => {
      if (asked) incoming.post(1, new Uint8Array(length));
      land(incoming, sent);
      if (!asked && incoming.takeEarly(1, length) === undefined) incoming.post(1, new Uint8Array(length));
    };
    expect(meet).toThrow(message);
  });
});
