import { algorithms } from "@skein/collectives/algorithms";
import { ethernetLinks, type GroupSelectionOptions } from "@skein/collectives";
import fc from "fast-check";
import { expect, test } from "vitest";
import { collectiveModelOfGroup } from "../group-collective-model.ts";
import { collectiveSeconds } from "../collective-model.ts";
import { collectivePricer } from "./collective-price.ts";

const total = (phases: ReturnType<ReturnType<typeof collectivePricer>>["phases"]): number =>
  phases.reduce((sum, { startupSeconds, transferSeconds }) => sum + startupSeconds + transferSeconds, 0);

const situations = fc
  .record({
    hosts: fc.integer({ min: 1, max: 5 }),
    each: fc.integer({ min: 1, max: 4 }),
    order: fc.constantFrom("rank" as const, "any" as const),
  })
  .map(
    ({ hosts, each, order }): GroupSelectionOptions => ({
      worldSize: hosts * each,
      sharesMemory: false,
      hosts: Array.from({ length: hosts }, (_, host) => Array.from({ length: each }, (__, i) => host * each + i)),
      order,
    }),
  );

test("phases add up to the whole, and only existing links carry bytes", () => {
  fc.assert(
    fc.property(
      situations,
      fc.constantFrom("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "reduce"),
      fc.integer({ min: 1, max: 1e8 }),
      (group, kind, bytes) => {
        const { phases, seconds, algorithm, sentBytes } = collectivePricer(group)(kind, bytes);
        if (group.worldSize === 1) return seconds === 0 && phases.length === 0;
        expect(total(phases)).toBeCloseTo(seconds, 12);
        expect(phases.every(({ startupSeconds, transferSeconds }) => startupSeconds >= 0 && transferSeconds >= 0)).toBe(
          true,
        );
        if (group.hosts!.length === 1) expect(phases.map(({ stream }) => stream)).toEqual(["intra-node"]);
        if (group.hosts!.every((host) => host.length === 1))
          expect(phases.map(({ stream }) => stream)).toEqual(["inter-node"]);
        if (kind === "all-reduce")
          expect(sentBytes).toBeGreaterThanOrEqual(
            ((2 * (group.worldSize - 1)) / group.worldSize) * bytes * (1 - 1e-9),
          );
        return algorithms.some(({ name }) => name === algorithm);
      },
    ),
  );
});

test("reducing a large vector to one rank takes less time than reducing it to all", () => {
  // On two ranks, one vector is sent over one link in each direction.
  for (const worldSize of [4, 8, 16])
    for (const order of ["rank", "any"] as const) {
      const price = collectivePricer({ worldSize, sharesMemory: false, link: ethernetLinks, order });
      const [one, all] = [price("reduce", 2 ** 26), price("all-reduce", 2 ** 26)];
      expect(one.seconds, `${worldSize} ranks, order ${order}`).toBeLessThan(0.8 * all.seconds);
    }
});

test("a price equals the model of the group at powers of two", () => {
  const group: GroupSelectionOptions = { worldSize: 6, sharesMemory: false, link: ethernetLinks, order: "any" };
  const model = collectiveModelOfGroup(group);
  for (const bytes of [2 ** 10, 2 ** 16, 2 ** 24])
    expect(collectivePricer(group)("all-reduce", bytes).seconds).toBeCloseTo(collectiveSeconds(model, bytes), 10);
});

test("each message is read back and written, with the shares of gathered and scattered tensors", () => {
  const group = { worldSize: 4, sharesMemory: false };
  const readBack = { startupSeconds: 1e-3, secondsPerByte: 1e-6 };
  const [plain, read] = [collectivePricer(group), collectivePricer(group, readBack)];
  for (const [kind, bytes] of [
    ["all-reduce", 2000],
    ["all-gather", 1250],
    ["reduce-scatter", 1250],
  ] as const) {
    const { seconds, phases } = read(kind, 1000);
    expect(seconds - plain(kind, 1000).seconds).toBeCloseTo(2e-3 + 1e-6 * bytes, 12);
    expect(
      phases.reduce((sum, { startupSeconds, transferSeconds }) => sum + startupSeconds + transferSeconds, 0),
    ).toBeCloseTo(seconds, 12);
  }
  expect(collectivePricer({ worldSize: 1, sharesMemory: false }, readBack)("all-reduce", 1000).seconds).toBe(0);
});

test("a ragged exchange sends counts first, and sends to each peer separately", () => {
  const link = { secondsPerMessage: 1e-3, secondsPerByte: 1e-6 };
  const group: GroupSelectionOptions = {
    worldSize: 4,
    sharesMemory: false,
    link: { within: link, across: link, reduceSecondsPerByte: 0 },
  };
  const { algorithm, seconds, phases } = collectivePricer(group)("all-gather", 4000, true);
  expect(algorithm).toBe("ragged");
  // Three messages of 4 bytes, then three messages of 1000 bytes.
  expect(seconds).toBeCloseTo(6e-3 + 3 * 4e-6 + 3 * 1e-3, 12);
  expect(total(phases)).toBeCloseTo(seconds, 12);
  expect(collectivePricer(group)("all-gather", 4000).seconds).toBeLessThan(seconds);
});
