import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hardwareNamed, shippedHardware } from "../hardware/shipped/index.ts";
import { architectures, modelNamed } from "./architectures.ts";
import { largestBatch, largestTrainingBatch } from "./largest-batch.ts";
import { estimateTraining, type TrainingEstimate } from "./training.ts";
import { type TrainingConfiguration, trainingPlan, type ZeroStage } from "./training-configuration.ts";
import { deviceBytes, trainingMemory } from "./training-memory.ts";

const stages: readonly ZeroStage[] = [0, 1, 2, 3];
const a800 = hardwareNamed("a800");
/** All shipped hardware, with at most two hosts each. */
const hardwares = fc.constantFrom(
  ...shippedHardware.map((file) => ({
    ...file,
    topology: { ...file.topology, ranks: Math.min(8, file.topology.ranks) },
  })),
);
const base = { task: "training", batchPerRank: 1, sequenceLength: 512 } as const;
const llama = modelNamed("llama-2-7b");
const estimate = (given: Partial<TrainingConfiguration> = {}, shape = llama, hardware = a800): TrainingEstimate =>
  estimateTraining(shape, { ...base, ...given }, hardware);

const models = fc.constantFrom(...architectures);
/** Settings that are valid for all models. */
const plainSettings = fc.record({
  batchPerRank: fc.integer({ min: 1, max: 40 }),
  accumulation: fc.integer({ min: 1, max: 5 }),
  precision: fc.constantFrom("f32", "tf32", "mixed-f16", "mixed-bf16"),
  optimizer: fc.constantFrom("adam", "momentum", "sgd"),
  zeroStage: fc.constantFrom(...stages),
  recomputation: fc.constantFrom("none", "full"),
} as const);
const settings = plainSettings.map((given) => ({ task: "training", ...given }) as const);

describe("memory of weights, gradients and Adam's states", () => {
  const stateGigabytes = (name: string, zeroStage: ZeroStage): string => {
    const { weights, gradients, optimizerStates } = estimate({ zeroStage }, modelNamed(name)).memory;
    return ((weights + gradients + optimizerStates) / 1e9).toFixed(1);
  };

  test("on eight ranks matches ZeRO's formulas for Llama 2", () => {
    // Bytes per parameter by ZeRO stage: 16; 4 + 12/8; 2 + 14/8; 16/8.
    const table = ["llama-2-7b", "llama-2-13b", "llama-2-70b"].map((name) =>
      stages.map((stage) => stateGigabytes(name, stage)),
    );
    expect(table).toEqual([
      ["107.8", "37.1", "25.3", "13.5"],
      ["208.3", "71.6", "48.8", "26.0"],
      ["1103.6", "379.4", "258.7", "138.0"],
    ]);
  });

  test("decreases from stage to stage on two ranks or more, and is constant on one", () => {
    fc.assert(
      fc.property(models, settings, fc.integer({ min: 1, max: 70 }), (shape, configuration, ranks) => {
        const plan = trainingPlan(shape, configuration, { ranks, ranksPerHost: 8 });
        const bytes = stages.map((zeroStage) => deviceBytes(trainingMemory(shape, { ...plan, zeroStage })));
        for (const [stage, before] of bytes.slice(0, -1).entries()) {
          const after = bytes[stage + 1]!;
          const stateless =
            stage === 0 && configuration.optimizer === "sgd" && ["f32", "tf32"].includes(configuration.precision);
          if (ranks === 1 || stateless) expect(after).toBeCloseTo(before, 0);
          else expect(after).toBeLessThan(before);
        }
      }),
      { numRuns: 30 },
    );
  });
});

describe("time", () => {
  const near = (value: number, expected: number): void => expect(Math.abs(value / expected - 1)).toBeLessThan(1e-9);

  test("of a step is that of its operators, of exposed communication and of transfers to the host", () => {
    fc.assert(
      fc.property(models, settings, hardwares, (shape, configuration, hardware) => {
        const offload = { linkBytesPerSecond: 32e9, hostMemoryBytesPerSecond: 200e9 };
        for (const given of [configuration, { ...configuration, offload }]) {
          const { rows, stepSeconds, exposedSeconds, offloadSeconds, collectives, itemsPerSecond, itemsPerStep } =
            estimateTraining(shape, given, hardware);
          near(rows.reduce((sum, { seconds }) => sum + seconds, 0) + exposedSeconds + offloadSeconds, stepSeconds);
          const all = collectives.reduce((sum, { seconds }) => sum + seconds, 0);
          expect(exposedSeconds).toBeGreaterThanOrEqual(0);
          // Exposed communication cannot exceed all communication.
          expect(exposedSeconds).toBeLessThanOrEqual(all * (1 + 1e-9));
          near(itemsPerSecond * stepSeconds, itemsPerStep);
          for (const { seconds } of rows) expect(Number.isFinite(seconds) && seconds > 0).toBe(true);
        }
      }),
      { numRuns: 6 },
    );
  });

  test("never exceeds the device's peak rates", () => {
    fc.assert(
      fc.property(models, settings, hardwares, (shape, configuration, hardware) => {
        const { modelFlopsUtilization } = estimateTraining(shape, configuration, hardware);
        expect(modelFlopsUtilization).toBeGreaterThan(0);
        expect(modelFlopsUtilization).toBeLessThanOrEqual(hardware.device.assumedEfficiency);
      }),
      { numRuns: 8 },
    );
  });

  test("is shorter on a faster device and with faster links", () => {
    fc.assert(
      fc.property(models, settings, fc.double({ min: 1.1, max: 10, noNaN: true }), (shape, configuration, factor) => {
        const hardware = { ...hardwareNamed("hkbu-2080ti-10gbe"), topology: { ranks: 8, ranksPerHost: 4 } };
        const { device, links } = hardware;
        const { stepSeconds } = estimateTraining(shape, configuration, hardware);
        const { within, across } = links;
        const slower = {
          ...hardware,
          device: { ...device, memoryBytesPerSecond: device.memoryBytesPerSecond / factor },
        };
        expect(estimateTraining(shape, configuration, slower).stepSeconds).toBeGreaterThan(stepSeconds);
        const linksBy = (factor: number) => ({
          ...links,
          within: { ...within, secondsPerByte: within.secondsPerByte * factor },
          across: { ...across, secondsPerByte: across.secondsPerByte * factor },
        });
        expect(
          estimateTraining(shape, configuration, { ...hardware, links: linksBy(factor) }).stepSeconds,
        ).toBeGreaterThanOrEqual(stepSeconds);
      }),
      { numRuns: 6 },
    );
  });

  test("increases with recomputation by at most one forward pass, and flops by at most a third", () => {
    fc.assert(
      fc.property(models, settings, (shape, configuration) => {
        const plain = estimateTraining(shape, { ...configuration, recomputation: "none" }, a800);
        const full = estimateTraining(shape, { ...configuration, recomputation: "full" }, a800);
        const forward = plain.rows
          .filter(({ pass }) => pass === "forward")
          .reduce((sum, { seconds }) => sum + seconds, 0);
        expect(plain.recomputedFlops).toBe(0);
        expect(full.flops).toBe(plain.flops);
        expect(full.recomputedFlops).toBeGreaterThan(0);
        expect(full.recomputedFlops).toBeLessThanOrEqual(plain.flops / 3);
        expect(full.computeSeconds).toBeGreaterThan(plain.computeSeconds);
        expect(full.computeSeconds).toBeLessThanOrEqual(plain.computeSeconds + forward);
        expect(deviceBytes(full.memory)).toBeLessThanOrEqual(deviceBytes(plain.memory));
      }),
      { numRuns: 12 },
    );
  });
});

describe("the estimate reproduces findings of Zhang et al. 2023", () => {
  const share = (of: TrainingEstimate, which: (row: TrainingEstimate["rows"][number]) => boolean): number =>
    of.rows.filter(which).reduce((sum, { seconds }) => sum + seconds, 0) / of.computeSeconds;

  test("layers dominate the step, and matrix products dominate the layers", () => {
    for (const name of ["llama-2-7b", "llama-2-13b", "llama-2-70b"]) {
      const step = estimate({ zeroStage: 3 }, modelNamed(name));
      const layers = share(step, ({ part }) => part === "layer");
      expect(layers).toBeGreaterThan(0.8);
      expect(share(step, ({ part, operator }) => part === "layer" && operator === "matmul") / layers).toBeGreaterThan(
        0.6,
      );
    }
  });

  test("ZeRO-2 saves memory at almost no cost; ZeRO-3 saves more, at some cost", () => {
    const [plain, , second, third] = stages.map((zeroStage) => estimate({ zeroStage, batchPerRank: 4 }));
    expect(deviceBytes(second!.memory)).toBeLessThan(0.4 * deviceBytes(plain!.memory));
    // With ZeRO, the update is also sharded, so the whole step is not slower.
    expect(second!.stepSeconds).toBeLessThan(1.05 * plain!.stepSeconds);
    expect(deviceBytes(third!.memory)).toBeLessThan(deviceBytes(second!.memory));
  });

  test("FlashAttention is faster, and uses less memory", () => {
    for (const sequenceLength of [512, 2048, 4096]) {
      const [flash, plain] = [true, false].map((flashAttention) => estimate({ flashAttention, sequenceLength }));
      expect(flash!.stepSeconds).toBeLessThan(plain!.stepSeconds);
      expect(deviceBytes(flash!.memory)).toBeLessThan(deviceBytes(plain!.memory));
    }
  });

  test("recomputation trades throughput for memory", () => {
    const [plain, selective, full] = (["none", "selective", "full"] as const).map((recomputation) =>
      estimate({ recomputation, flashAttention: false, batchPerRank: 4, sequenceLength: 1024 }),
    );
    expect(plain!.itemsPerSecond).toBeGreaterThan(selective!.itemsPerSecond);
    expect(selective!.itemsPerSecond).toBeGreaterThan(full!.itemsPerSecond);
    expect(deviceBytes(plain!.memory)).toBeGreaterThan(deviceBytes(selective!.memory));
    expect(deviceBytes(selective!.memory)).toBeGreaterThan(deviceBytes(full!.memory));
  });

  test("offload is much slower", () => {
    // Two EPYC 7402 on that platform, with eight channels of DDR4-3200 each.
    const offload = { linkBytesPerSecond: 32e9, hostMemoryBytesPerSecond: 409.6e9 };
    for (const zeroStage of [1, 2, 3] as const) {
      const [plain, offloaded] = [undefined, offload].map((offload) => estimate({ zeroStage, offload }));
      expect(offloaded!.stepSeconds).toBeGreaterThan(2 * plain!.stepSeconds);
      expect(deviceBytes(offloaded!.memory)).toBeLessThan(deviceBytes(plain!.memory));
      expect(offloaded!.memory.onHost).toBe(plain!.memory.optimizerStates);
    }
  });

  test("quantized weights with adapters use the least memory", () => {
    const adapters = { kind: "lora", rank: 64, projections: ["query", "key", "value", "output"] } as const;
    const bytes = [{}, { adapters }, { adapters, quantized: "i8" }, { adapters, quantized: "i4" }] as const;
    const sizes = bytes.map((given) => deviceBytes(estimate(given).memory));
    expect(sizes).toEqual(sizes.toSorted((a, b) => b - a));
    // 6.48e9 weights in layers, of two bytes each, or of half a byte and a fraction of a scale.
    expect((sizes[1]! - sizes[3]!) / 1e9).toBeCloseTo(6.476 * (2 - 0.5625), 1);
  });
});

describe("tensor parallelism", () => {
  test("shards weights and layers, and sums each layer's values four times per step", () => {
    const alone = estimate({ sequenceLength: 2048 });
    for (const tensorParallel of [2, 4, 8]) {
      const shared = estimate({ sequenceLength: 2048, tensorParallel });
      const row = shared.collectives.find(({ axis }) => axis === "tensor")!;
      expect(row.calls).toBe(4 * 32);
      expect(row.bytes).toBe(4 * 32 * 2048 * 4096 * 2);
      expect(shared.exposedSeconds).toBeGreaterThanOrEqual(row.seconds);
      expect(shared.memory.weights / alone.memory.weights).toBeCloseTo(1 / tensorParallel, 3);
      expect(shared.itemsPerStep * tensorParallel).toBe(alone.itemsPerStep);
      expect(shared.computeSeconds).toBeLessThan(alone.computeSeconds);
    }
  });
});

describe("the largest batch", () => {
  test("equals the result of a linear search", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 2000 }),
        (fixed, each, capacity) => {
          const bytesOf = (batch: number): number => fixed + each * batch;
          const batch = Math.max(0, Math.floor((capacity - fixed) / each));
          expect(largestBatch(bytesOf, capacity)).toEqual({
            batch,
            bytes: bytesOf(Math.max(1, batch)),
            missingBytes: batch === 0 ? bytesOf(1) - capacity : 0,
          });
        },
      ),
    );
    expect(() => largestBatch((batch) => batch, Number.NaN)).toThrow("NaN bytes");
  });

  test("increases from stage to stage, and with recomputation", () => {
    for (const name of ["gpt-2-xl", "llama-2-7b", "llama-2-13b", "llama-2-70b", "resnet-50"])
      for (const hardware of [a800, hardwareNamed("rtx-4090")]) {
        const configurations = stages.map((zeroStage) => ({ task: "training", zeroStage }) as const);
        const found = [...configurations, { ...configurations[3]!, recomputation: "full" } as const].map(
          (configuration) => largestTrainingBatch(modelNamed(name), configuration, hardware),
        );
        const reach = found.map(({ batch, missingBytes }) => batch - missingBytes);
        expect(reach).toEqual(reach.toSorted((a, b) => a - b));
        for (const { batch, bytes } of found) expect(bytes <= hardware.device.memoryBytes).toBe(batch > 0);
      }
  });
});

test("rejects invalid configurations", () => {
  const refused = (given: object, message: string, shape = llama): void =>
    expect(() => estimateTraining(shape, { ...base, ...given } as TrainingConfiguration, a800)).toThrow(message);
  refused({ batchPerRank: 0 }, "batchPerRank is 0, but must be a whole number from 1 to 1000000000");
  refused({ batchPerRank: 2 ** 53 }, "batchPerRank is 9007199254740992");
  refused({ batchPerRank: "4" }, 'batchPerRank is "4"');
  refused({ zerostage: 2 }, 'training has no setting "zerostage"; its settings are task, batchPerRank');
  refused(
    { adapters: { kind: "lora", rank: 5000, projections: ["query"] } },
    "adapters.rank is 5000, but llama-2-7b has a width of 4096",
  );
  refused({ batchPerRank: Number.NaN }, "batchPerRank is NaN");
  refused({ accumulation: 1.5 }, "accumulation is 1.5");
  refused({ zeroStage: 4 }, "zeroStage is 4, but must be one of 0, 1, 2, 3");
  refused({ precision: "f64" }, "precision is f64, but must be one of f32, tf32, mixed-f16, mixed-bf16");
  refused({ optimizer: "adamw" }, "optimizer is adamw");
  refused({ recomputation: "some" }, "recomputation is some");
  refused({ tensorParallel: 3 }, "tensorParallel is 3 on 8 ranks");
  refused({ tensorParallel: 8 }, "tensorParallel is 8, but gpt-2 has 12 heads", modelNamed("gpt-2"));
  refused(
    { sequenceLength: 2000 },
    "sequenceLength is 2000, but gpt-2 has 1024 learned positions",
    modelNamed("gpt-2"),
  );
  refused({ quantized: "i4" }, "quantized weights cannot be trained");
  refused({ adapters: { kind: "lora", rank: 8, projections: [] } }, "nothing would be trained");
  refused(
    { adapters: { kind: "lora", rank: 8, projections: ["gate"] } },
    "is gate, but must be one of query",
    modelNamed("gpt-2"),
  );
  refused({ offload: { linkBytesPerSecond: 0, hostMemoryBytesPerSecond: 1 } }, "offload.linkBytesPerSecond is 0");
  refused(
    {},
    "sequenceLength is set, but has no effect on resnet-50, which is not a transformer",
    modelNamed("resnet-50"),
  );
  refused(
    { sequenceLength: undefined, recomputation: "selective" },
    "resnet-50 has no attention",
    modelNamed("resnet-50"),
  );
});
