import type { HardwareFile } from "../hardware/hardware.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hardwareNamed } from "../hardware/shipped/index.ts";
import { modelNamed } from "./architectures.ts";
import { gatheredPassSeconds } from "./gathered-pass.ts";
import { axisPrices } from "./rank-groups.ts";
import { estimateTraining } from "./training.ts";
import type { TrainingConfiguration, ZeroStage } from "./training-configuration.ts";

const unit = (gatherSeconds: number, computeSeconds: number, reduceSeconds = 0) => ({
  gatherSeconds,
  computeSeconds,
  reduceSeconds,
});

describe("a pass with gathered weights", () => {
  test("waits for the first part, and then for the longer of gather and computation", () => {
    expect(gatheredPassSeconds([])).toBe(0);
    expect(gatheredPassSeconds([unit(3, 5, 2)])).toBe(10);
    // Gathers are hidden by computation: 1 + 3 · 10 seconds.
    expect(gatheredPassSeconds([unit(1, 10), unit(1, 10), unit(1, 10)])).toBe(31);
    // Computation is hidden by gathers: the second gather starts when the first part starts to compute.
    expect(gatheredPassSeconds([unit(10, 1), unit(10, 1), unit(10, 1)])).toBe(31);
    // While parts compute, the network gathers part 2 (1 to 5) and reduces the gradients of part 1 (11 to 13). The
    // reduction of part 2 comes last: 1 + 20 + 2.
    expect(gatheredPassSeconds([unit(1, 10, 2), unit(4, 10, 2)])).toBe(23);
    // Gathers are at most one part ahead: the third gather starts with the second part's computation, at 11.
    expect(gatheredPassSeconds([unit(1, 10), unit(1, 10), unit(12, 1)])).toBe(24);
    // A part without weights does not wait for a gather.
    expect(gatheredPassSeconds([unit(0, 1), unit(5, 1), unit(0, 1)])).toBe(7);
  });

  test("takes at least the computation and at least the communication, and at most their sum", () => {
    const seconds = fc.nat(20);
    fc.assert(
      fc.property(fc.array(fc.tuple(seconds, seconds, seconds), { maxLength: 8 }), (tuples) => {
        const units = tuples.map(([gather, compute, reduce]) => unit(gather, compute, reduce));
        const [gather, compute, reduce] = [0, 1, 2].map((i) => tuples.reduce((sum, tuple) => sum + tuple[i]!, 0)) as [
          number,
          number,
          number,
        ];
        const taken = gatheredPassSeconds(units);
        expect(taken).toBeGreaterThanOrEqual(Math.max(compute, gather + reduce));
        expect(taken).toBeLessThanOrEqual(compute + gather + reduce);
      }),
    );
  });
});

const llama = modelNamed("llama-2-7b");
const bytes = 2 * 6_738_415_616;

describe("communication between data-parallel ranks in a step", () => {
  const rowsOf = (zeroStage: ZeroStage, given: Partial<TrainingConfiguration> = {}) =>
    estimateTraining(
      llama,
      { task: "training", batchPerRank: 1, sequenceLength: 256, accumulation: 3, zeroStage, ...given },
      hardwareNamed("a800"),
    ).collectives.map(({ name, kind, calls, bytes }) => ({ name, kind, calls, bytes }));

  test("has the collectives of each ZeRO stage, per accumulated batch or once", () => {
    const parts = 34;
    expect(rowsOf(0)).toEqual([{ name: "gradients", kind: "all-reduce", calls: parts, bytes }]);
    const updated = { name: "updated weights", kind: "all-gather", calls: 1, bytes };
    expect(rowsOf(1)).toEqual([{ name: "gradients", kind: "reduce-scatter", calls: parts, bytes }, updated]);
    expect(rowsOf(2)).toEqual([
      { name: "gradients", kind: "reduce-scatter", calls: 3 * parts, bytes: 3 * bytes },
      updated,
    ]);
    expect(rowsOf(3)).toEqual([
      { name: "weights, forward", kind: "all-gather", calls: 3 * parts, bytes: 3 * bytes },
      { name: "weights, backward", kind: "all-gather", calls: 3 * parts, bytes: 3 * bytes },
      { name: "gradients", kind: "reduce-scatter", calls: 3 * parts, bytes: 3 * bytes },
    ]);
  });

  test("of adapters consists of their gradients only", () => {
    const adapters = { kind: "lora", rank: 8, projections: ["query", "value"] } as const;
    expect(rowsOf(0, { adapters })).toEqual([
      { name: "gradients", kind: "all-reduce", calls: 32, bytes: 2 * 32 * 4 * 4096 * 8 },
    ]);
  });

  test("is empty on one rank, and if all ranks share the model", () => {
    const one = { ...hardwareNamed("a800"), topology: { ranks: 1, ranksPerHost: 1 } };
    const configuration = { task: "training", batchPerRank: 1, sequenceLength: 256, zeroStage: 3 } as const;
    const alone = estimateTraining(llama, configuration, one);
    expect([alone.collectives, alone.exposedSeconds]).toEqual([[], 0]);
    expect(rowsOf(3, { tensorParallel: 8 }).map(({ name }) => name)).toEqual(["layer values"]);
  });

  test("is hidden behind computation, and more so with a larger batch", () => {
    const exposed = [1, 2, 4, 8, 16].map((batchPerRank) => {
      const { exposedSeconds, collectives } = estimateTraining(
        llama,
        { task: "training", batchPerRank, sequenceLength: 512 },
        hardwareNamed("rtx-4090"),
      );
      return exposedSeconds / collectives[0]!.seconds;
    });
    expect(exposed).toEqual(exposed.toSorted((a, b) => b - a));
    expect(exposed[0]).toBeGreaterThan(0.5);
    // The reduction of the embedding's gradient comes last and is exposed.
    expect(exposed[4]).toBeLessThan(0.1);
    expect(exposed[4]).toBeGreaterThan(0);
  });
});

describe("groups of a mesh", () => {
  const slow = { secondsPerMessage: 0, secondsPerByte: 1e-9 };
  const hardware = {
    ...hardwareNamed("hkbu-2080ti-10gbe"),
    topology: { ranks: 8, ranksPerHost: 4 },
    links: {
      ...hardwareNamed("hkbu-2080ti-10gbe").links,
      within: { ...slow, secondsPerByte: 0 },
      across: slow,
      reduceSecondsPerByte: 0,
    },
  };

  test("of data-parallel ranks share a host's link", () => {
    const size = 1e9;
    // Two hosts: the whole vector goes over the link of each host, sent by one group of eight, or by four groups with a
    // quarter each.
    expect(axisPrices(hardware, 1).data.secondsOf("all-reduce", size)).toBeCloseTo(1, 6);
    expect(axisPrices(hardware, 4).data.secondsOf("all-reduce", size / 4)).toBeCloseTo(1, 6);
    expect(axisPrices(hardware, 2).data.secondsOf("all-reduce", size / 2)).toBeCloseTo(1, 6);
    expect(axisPrices(hardware, 4).data.ranks).toBe(2);
  });

  test("of tensor-parallel ranks are within a host if possible", () => {
    expect(axisPrices(hardware, 4).tensor.secondsOf("all-reduce", 1e9)).toBe(0);
    expect(axisPrices(hardware, 8).tensor.secondsOf("all-reduce", 1e9)).toBeCloseTo(1, 6);
  });
  test("of ranks in several racks use the links between racks, and the growth of the network", () => {
    const hosts = { ranks: 16, ranksPerHost: 4 };
    const seconds = (topology: HardwareFile["topology"], links: Partial<HardwareFile["links"]>): number =>
      axisPrices({ ...hardware, topology, links: { ...hardware.links, ...links } }, 1).data.secondsOf(
        "all-reduce",
        1e9,
      );
    const plain = seconds(hosts, {});
    const betweenRacks = { ...slow, secondsPerByte: 3e-9 };
    expect(seconds({ ...hosts, hostsPerRack: 2 }, { betweenRacks })).toBeCloseTo(3 * plain, 6);
    expect(seconds(hosts, { growth: { numHosts: 2, sharePerDoubling: 0.5 } })).toBeCloseTo(1.5 * plain, 6);
  });
});
