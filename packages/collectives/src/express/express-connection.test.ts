import { readSync, writeSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { expect, test } from "vitest";
import { laneCount } from "../control-block/layout.ts";
import { heapMessageMemory } from "../message-memory.ts";
import { FrameReader } from "../wire/frame-reader.ts";
import { ExpressConnection, expressBytes } from "./express-connection.ts";
import { nodeRuntime } from "../join-world.ts";

const fdOf = (socket: Socket): number => {
  const { _handle: handle } = socket as unknown as { readonly _handle: { readonly fd: number; readStop(): number } };
  handle.readStop();
  return handle.fd;
};

/** Calls `body` with the two ends of an express connection, both read and written by this thread. */
const withPair = async (
  body: (a: ExpressConnection, b: ExpressConnection, fds: readonly [number, number], sockets: Socket[]) => void,
  headerOnly = false,
): Promise<void> => {
  const server = createServer({ pauseOnConnect: true });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const accepted = new Promise<Socket>((resolve) => server.once("connection", resolve));
  const dialled = connect({ port: (server.address() as AddressInfo).port, host: "127.0.0.1" });
  const sockets = [await accepted, dialled];
  for (const socket of sockets) socket.setNoDelay(true); // Links set the same option.
  await new Promise<void>((resolve) => dialled.once("connect", resolve));
  const fds = [fdOf(sockets[0]!), fdOf(sockets[1]!)] as const;
  try {
    const ends = fds.map(
      (fd, peer) => new ExpressConnection({ peer, fd, headerOnly }, heapMessageMemory(), nodeRuntime),
    );
    body(ends[0]!, ends[1]!, fds, sockets);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
};

const until = (ready: () => boolean): void => {
  const start = performance.now();
  while (!ready()) if (performance.now() - start > 10_000) throw new Error("nothing was received");
};

test.each([{ headerOnly: false }, { headerOnly: true }])(
  "law: messages of both ends arrive completely and in order on each lane, however they are read, %j",
  async ({ headerOnly }) => {
    const step = fc.record({
      from: fc.nat({ max: 1 }),
      action: fc.constantFrom("send", "send", "send", "look"),
      lane: fc.nat({ max: laneCount - 1 }),
      length: fc.constantFrom(0, 1, 31, 4096, expressBytes),
    });
    await withPair((a, b) => {
      const ends = [a, b];
      fc.assert(
        // At most the number of messages that may be received before they are requested.
        fc.property(fc.array(step, { maxLength: 32 }), (steps) => {
          const sent: { readonly tag: number; readonly bytes: Uint8Array }[][][] = ends.map(() =>
            Array.from({ length: laneCount }, () => []),
          );
          for (const [i, { from, action, lane, length }] of steps.entries()) {
            if (action === "look") {
              ends[from]!.look();
              continue;
            }
            const bytes = Uint8Array.from({ length }, (_, k) => (k * 7 + i) & 255);
            sent[from]![lane]!.push({ tag: 1000 + i, bytes: bytes.slice() });
            ends[from]!.send(lane, 1000 + i, bytes);
            bytes.fill(0); // The bytes may change at once.
          }
          for (const [from, lanes] of sent.entries())
            for (const [lane, messages] of lanes.entries())
              for (const message of messages) {
                const taker = ends[1 - from]!;
                until(() => (ends[from]!.flush(), taker.look(), taker.first(lane) !== undefined));
                expect(taker.take(lane)).toEqual(message);
              }
          expect(ends.map(({ flushed }) => flushed)).toEqual([true, true]);
        }),
        { numRuns: 60, endOnFailure: true },
      );
    }, headerOnly);
  },
);

test("keeps bytes that the system does not accept, and sends them in order when the peer has read", async () => {
  await withPair((a, _, [, fd]) => {
    const bytes = new Uint8Array(expressBytes);
    let sent = 0;
    const send = (): void => a.send(0, sent, bytes.fill(sent++ & 255));
    while (a.flushed) send();
    for (let i = 0; i < 3; i++) send();
    let taken = 0;
    // More messages than a connection accepts before they are requested.
    const reader = new FrameReader({
      limit: () => expressBytes,
      target: ({ length }) => new Uint8Array(length),
      frame: ({ tag, sequence }, payload) => {
        expect([tag, sequence, payload[0], payload.at(-1)]).toEqual([taken, taken, taken & 255, taken & 255]);
        taken += 1;
      },
    });
    const chunk = new Uint8Array(1_000_001);
    until(() => {
      try {
        reader.push(chunk.subarray(0, readSync(fd, chunk)));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
      }
      a.flush();
      return taken === sent;
    });
    expect(a.flushed).toBe(true);
  });
});

test("rejects bytes that are not a frame, and more unrequested messages than allowed", async () => {
  await withPair((a, _, [, fd]) => {
    writeSync(fd, new Uint8Array(64).fill(7));
    expect(() => until(() => a.look())).toThrow(/but 0x7070707 came/);
  });
  await withPair((a, b) => {
    expect(() => {
      for (let i = 0; i < 40; i++) a.send(1, i, new Uint8Array(4));
      until(() => (b.look(), false));
    }).toThrow(/33 messages of lane 1 that no request has received, 32 are allowed/);
  });
});

test("receives everything that was sent before the peer closed the connection, and then nothing", async () => {
  await withPair((a, b, _, sockets) => {
    a.send(0, 5, Uint8Array.of(1, 2));
    sockets[0]!.destroySoon();
    until(() => (b.look(), b.first(0) !== undefined));
    expect(b.take(0)).toEqual({ tag: 5, bytes: Uint8Array.of(1, 2) });
    b.send(0, 6, Uint8Array.of(3));
    b.flush();
    expect(b.ended || b.flushed).toBe(true);
  });
});
