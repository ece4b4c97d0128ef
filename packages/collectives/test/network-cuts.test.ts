import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { algorithms } from "../src/algorithms/table.ts";
import { execute, scratchBytes } from "../src/execute.ts";
import type { LinkOptions } from "../src/network/link-options.ts";
import type { NetworkWorld } from "../src/network/network-transport.ts";
import { plainArithmetic } from "../src/plain-arithmetic.ts";
import type { Algorithm } from "../src/schedule.ts";
import { createMemoryWorld } from "../src/transport/memory-transport.ts";
import type { Transport } from "../src/transport/transport.ts";
import { Cable, type Cut } from "./network-proxy.ts";
import { openWorlds, type TestWorldOptions } from "./network-worlds.ts";
import { parametersOf, regionElements } from "./world.ts";

const open: NetworkWorld[] = [];
const cables: Cable[] = [];
const closeAll = async (): Promise<void> => {
  await Promise.all(open.splice(0).map((world) => world.close()));
  await Promise.all(cables.splice(0).map((cable) => cable.remove()));
};
afterEach(closeAll);

/** Opens worlds in which every connection runs over a cable; cuts are distributed to the cables in turn. */
const openedWithCuts = async (
  worldSize: number,
  cuts: readonly Cut[],
  options: TestWorldOptions,
): Promise<readonly NetworkWorld[]> => {
  const numCables = worldSize * (worldSize - 1);
  const worlds = await openWorlds(worldSize, {
    ...options,
    route: async (_, to) => {
      const { cable, address } = await Cable.to(to);
      cable.cuts = cuts.filter((_, i) => i % numCables === cables.length % numCables);
      cables.push(cable);
      return address;
    },
  });
  open.push(...worlds);
  return worlds;
};

/** Returns values whose sum depends on the order of additions. */
const delicate = (rank: number, count: number): Uint8Array =>
  new Uint8Array(
    Float32Array.from({ length: count }, (_, i) => Math.sin(i * 3 + rank * 17) * 10 ** ((i + rank * 3) % 7)).buffer,
  );

const run = (algorithm: Algorithm, n: number, transports: readonly Transport[], tag: number): Promise<Uint8Array[]> => {
  const worldSize = transports.length;
  const counts = regionElements(algorithm.kind, worldSize, n);
  return Promise.all(
    transports.map(async (transport, rank) => {
      const schedule = algorithm.schedule(parametersOf(rank, worldSize, n));
      const output = new Uint8Array(counts.output * 4);
      const scratch = new Uint8Array(scratchBytes(schedule, "f32"));
      const input = delicate(rank, counts.input);
      await execute(schedule, { input, output, scratch, dtype: "f32", tag }, transport, plainArithmetic());
      input.fill(255); // the caller may reuse the input: resent frames must not read from it
      return output;
    }),
  );
};

const places = fc.oneof(fc.nat(200), fc.nat(5000), fc.nat(200_000));
const cut: fc.Arbitrary<Cut> = fc.record({
  direction: fc.constantFrom("up", "down"),
  at: places,
  how: fc.constantFrom("reset", "end"),
});
const chosen = ["ring-all-reduce", "recursive-doubling-all-reduce", "ring-all-gather", "pairwise-all-to-all"].map(
  (name) => algorithms.find((algorithm) => algorithm.name === name)!,
);

describe.each([
  ["tcp", 10],
  ["tls", 3],
] as const)("connections that are cut anywhere, over %s", (over, numRuns) => {
  test("do not change a bit of any collective", async () => {
    let numCut = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 2, max: 4 }),
        fc.array(cut, { minLength: 4, maxLength: 24 }),
        fc.integer({ min: 1, max: 2 }),
        fc.constantFrom(1000, 10_000, 200_000),
        fc.constantFrom(37, 20_011, 70_001),
        async (worldSize, cuts, socketsPerPair, frameBytes, n) => {
          const link: Partial<LinkOptions> = {
            socketsPerPair,
            frameBytes,
            earlyBytes: 2 * frameBytes,
          };
          const worlds = await openedWithCuts(worldSize, cuts, { over, link });
          const check = async (algorithm: Algorithm, lane: number): Promise<void> => {
            const transports = worlds.map((world) => world.transports[lane]!);
            const seen = await run(algorithm, n, transports, lane + 1);
            const expected = await run(algorithm, n, createMemoryWorld(worldSize), 1);
            // Not `toEqual`, which takes minutes to print differences.
            const same = seen.map((bytes, rank) => Buffer.compare(bytes, expected[rank]!) === 0);
            expect(same, `${algorithm.name}, ${n} elements`).toEqual(seen.map(() => true));
          };
          await Promise.all(chosen.map(check));
          await check(chosen[0]!, 0);
          expect(worlds.map((world) => world.failure())).toEqual(worlds.map(() => undefined));
          numCut += cables.reduce((sum, cable) => sum + cable.numCut, 0);
          await closeAll();
        },
      ),
      { numRuns, endOnFailure: true }, // shrinking runs that time out takes too long
    );
    expect(numCut).toBeGreaterThan(numRuns);
  });
});
