import { bytesPerElement } from "@skein/tensor-core";
import { afterEach, describe, expect, test } from "vitest";
import { algorithms } from "../src/algorithms/table.ts";
import { execute, scratchBytes } from "../src/execute.ts";
import type { MessageMemory } from "../src/message-memory.ts";
import type { LinkCodec } from "../src/network/link.ts";
import type { NetworkWorld } from "../src/network/network-transport.ts";
import { plainArithmetic } from "../src/plain-arithmetic.ts";
import type { Algorithm } from "../src/schedule.ts";
import { createMemoryWorld } from "../src/transport/memory-transport.ts";
import type { Transport } from "../src/transport/transport.ts";
import { openWorlds } from "./network-worlds.ts";
import { parametersOf, regionElements } from "./world.ts";

const open: NetworkWorld[] = [];
const opened = async (...args: Parameters<typeof openWorlds>): Promise<readonly NetworkWorld[]> => {
  const worlds = await openWorlds(...args);
  open.push(...worlds);
  return worlds;
};
afterEach(async () => {
  await Promise.all(open.splice(0).map((world) => world.close()));
});

/** Returns values whose sum depends on the order of additions. */
const delicate = (rank: number, count: number): Uint8Array =>
  new Uint8Array(
    Float32Array.from({ length: count }, (_, i) => Math.sin(i * 3 + rank * 17) * 10 ** ((i + rank * 3) % 7)).buffer,
  );

const run = async (
  algorithm: Algorithm,
  n: number,
  transports: readonly Transport[],
  tag = 5,
): Promise<Uint8Array[]> => {
  const worldSize = transports.length;
  const counts = regionElements(algorithm.kind, worldSize, n);
  return Promise.all(
    transports.map(async (transport, rank) => {
      const schedule = algorithm.schedule(parametersOf(rank, worldSize, n));
      const output = new Uint8Array(counts.output * bytesPerElement.f32);
      const scratch = new Uint8Array(scratchBytes(schedule, "f32"));
      await execute(
        schedule,
        { input: delicate(rank, counts.input), output, scratch, dtype: "f32", tag },
        transport,
        plainArithmetic(),
      );
      return output;
    }),
  );
};

/** Returns memory that counts the bytes in use, current (`out`) and maximum (`most`). */
const counted = (): MessageMemory & { readonly out: number; readonly most: number } => {
  const counter = {
    out: 0,
    most: 0,
    take: (byteLength: number): Uint8Array => {
      counter.out += byteLength;
      counter.most = Math.max(counter.most, counter.out);
      return new Uint8Array(byteLength);
    },
    give: ({ byteLength }: Uint8Array): void => {
      counter.out -= byteLength;
    },
  };
  return counter;
};

describe.each([
  ["tcp", 2],
  ["tcp", 4],
  ["tls", 2],
  ["tls", 4],
] as const)("over %s, %i ranks", (over, worldSize) => {
  test("every algorithm gives the same bits as over the in-memory transport", async () => {
    const memories = Array.from({ length: worldSize }, counted);
    const worlds = await opened(worldSize, { over, memoryOf: (rank) => memories[rank]! });
    let tag = 1;
    for (const algorithm of algorithms) {
      for (const n of [0, 1, 13, 10_007]) {
        const lane = tag % 4;
        const expected = await run(algorithm, n, createMemoryWorld(worldSize));
        const seen = await run(
          algorithm,
          n,
          worlds.map(({ transports }) => transports[lane]!),
          tag++,
        );
        expect(seen, `${algorithm.name}, ${n} elements`).toEqual(expected);
      }
    }
    for (const { most, out } of memories) {
      expect(most).toBeGreaterThan(0);
      expect(out).toBe(0);
    }
  });

  test("all lanes at once", async () => {
    const worlds = await opened(worldSize, { over });
    const all = algorithms.filter(({ kind }) => kind === "all-reduce");
    await Promise.all(
      [0, 1, 2, 3].map(async (lane) => {
        for (const [i, algorithm] of all.entries()) {
          const n = 4000 * (lane + 1) + i;
          const seen = await run(
            algorithm,
            n,
            worlds.map(({ transports }) => transports[lane]!),
            i * 4 + lane + 1,
          );
          expect(seen, `${algorithm.name} on lane ${lane}`).toEqual(
            await run(algorithm, n, createMemoryWorld(worldSize)),
          );
        }
      }),
    );
  });
});

test.each([1, 3])(
  "100 MB to a receiver that starts late use 1 MiB of memory, over %i sockets",
  async (socketsPerPair) => {
    const memories = [counted(), counted()];
    const link = { socketsPerPair, frameBytes: 65_536, earlyBytes: 2 ** 20 };
    const worlds = await opened(2, { link, memoryOf: (rank) => memories[rank]! });
    const [from, to] = worlds.map(({ transports }) => transports[0]!);
    const megabytes = [0, 1, 2, 3, 4].map((k) =>
      new Uint8Array(1_000_000).map((_, i) => (i * 7 + (i >>> 8) + k * 13) & 255),
    );
    const handles = [];
    for (let k = 0; k < 100; k++) handles.push(from!.send(1, k, megabytes[k % 5]!));
    await new Promise((resolve) => setTimeout(resolve, 200)); // all data that may arrive without a receive has arrived
    expect(memories[1]!.most).toBeGreaterThan(0);
    const target = new Uint8Array(1_000_000);
    for (let k = 0; k < 100; k++) {
      await to!.receiveInto!(0, k, target.fill(0));
      expect(Buffer.compare(target, megabytes[k % 5]!), `message ${k}`).toBe(0);
    }
    for (const handle of handles) await from!.whenSent(handle);
    expect(memories[1]!.most).toBeLessThanOrEqual(2 ** 20);
    expect(memories[0]!.most).toBe(0);
  },
);

test("a message for which a receive is posted arrives without intermediate memory", async () => {
  const memory = counted();
  const [a, b] = await opened(2, { memoryOf: () => memory });
  const target = new Uint8Array(3_000_000);
  const waited = b!.transports[2]!.receiveInto!(0, 9, target);
  await new Promise((resolve) => setTimeout(resolve, 20));
  a!.transports[2]!.send(1, 9, new Uint8Array(3_000_000).fill(7));
  await waited;
  expect(target.every((byte) => byte === 7)).toBe(true);
  expect(memory.most).toBe(0);
});

test("a coded frame restores the bits that were sent, with fewer bytes on the wire", async () => {
  const sizes: number[] = [];
  // Codec that omits trailing zeros.
  const codec: LinkCodec = {
    encode: (bytes) => {
      const end = bytes.findLastIndex((byte) => byte !== 0) + 1;
      sizes.push(end);
      return end < bytes.byteLength ? bytes.slice(0, end) : undefined;
    },
    decode: (coded, target) => target.fill(0).set(coded),
  };
  const [a, b] = await opened(2, { codec });
  const message = new Uint8Array(1_000_000);
  message.fill(3, 0, 300_000);
  a!.transports[0]!.send(1, 1, message);
  const got = await b!.transports[0]!.receive(0, 1, message.byteLength);
  expect(Buffer.compare(got, message)).toBe(0);
  b!.transports[0]!.release(0);
  expect(sizes).toEqual([300_000, 0]);
});

test("an urgent lane finishes long before a large message that was sent first", async () => {
  const [a, b] = await opened(2);
  const large = new Uint8Array(200_000_000);
  const order: string[] = [];
  const slow = Promise.resolve(b!.transports[0]!.receiveInto!(0, 1, new Uint8Array(large.byteLength))).then(() =>
    order.push("large"),
  );
  a!.transports[0]!.send(1, 1, large);
  await new Promise((resolve) => setImmediate(resolve));
  const fast = Promise.resolve(b!.transports[3]!.receiveInto!(0, 2, new Uint8Array(1000))).then(() =>
    order.push("urgent"),
  );
  a!.transports[3]!.send(1, 2, new Uint8Array(1000));
  await Promise.all([slow, fast]);
  expect(order).toEqual(["urgent", "large"]);
});

test("a world whose ranks have all finished closes without an error, in any order", async () => {
  const worlds = await opened(3);
  const failures: unknown[] = [];
  for (const world of worlds) world.onFailure((error) => failures.push(error));
  await run(
    algorithms.find(({ name }) => name === "ring-all-reduce")!,
    1000,
    worlds.map(({ transports }) => transports[0]!),
  );
  await worlds[1]!.close();
  await new Promise((resolve) => setTimeout(resolve, 50));
  await worlds[0]!.close();
  await worlds[2]!.close();
  expect(failures).toEqual([]);
  expect(() => worlds[0]!.transports[0]!.send(1, 1, new Uint8Array(4))).toThrow(/on a closed group/);
});

test("a world of one rank has no links", async () => {
  const [world] = await opened(1);
  expect(await run(algorithms.find(({ name }) => name === "ring-all-reduce")!, 5, [world!.transports[0]!])).toEqual([
    delicate(0, 5),
  ]);
});
