import { describe, expect, test } from "vitest";
import { multiplyAddsOf, profileOf } from "./architectures.ts";
import { calibratedCluster } from "./calibrated-cluster.ts";
import { calibrateCluster, predictCells } from "./calibrate-cluster.ts";
import { negotiatedModel, ringModel, serverModel } from "./cluster.ts";
import { allReduceMethods, summarizeErrors } from "./held-out.ts";
import { comparePairs, isMisordered } from "./orderings.ts";
import { predictIteration, singleSeconds } from "./predict-iteration.ts";
import { predictLarger } from "./predict-larger.ts";
import { cells, methods, networks } from "./seven-methods.ts";
import { collectiveSeconds } from "@skein/cost-model";

describe("models by their published shapes", () => {
  // Numbers of tensors and elements, as counted for ACP-SGD, and multiply-adds. ResNet-50 has 4.1 · 10⁹ multiply-adds;
  // He et al. 2015 report 3.8 · 10⁹, without shortcuts and with the stride in the 1 × 1 convolution.
  test.each([
    ["ResNet-50", 161, 25_557_032, 4.089e9],
    ["ResNet-152", 467, 60_192_808, 11.51e9],
    ["BERT-Base", 206, 110_106_428, 14.25e9],
    ["BERT-Large", 398, 336_226_108, 43.6e9],
  ] as const)("%s has %i tensors of %i elements", (model, numTensors, numElements, multiplyAdds) => {
    const { tensors } = profileOf(model, 2, 1);
    expect(tensors).toHaveLength(numTensors);
    expect(tensors.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(4 * numElements);
    expect(multiplyAddsOf(model) / multiplyAdds).toBeCloseTo(1, 2);
    expect(tensors.reduce((sum, tensor) => sum + tensor.backwardSeconds, 0)).toBeCloseTo(2, 9);
    expect(tensors.reduce((sum, tensor) => sum + tensor.forwardSeconds!, 0)).toBeCloseTo(1, 9);
  });

  test("the embedding of BERT is ready last, and its first gradient waits for the scores of all words", () => {
    const { tensors } = profileOf("BERT-Base", 1, 1);
    expect(tensors.slice(-3).map(({ bytes }) => bytes)).toEqual([4 * 30_522 * 768, 4 * 512 * 768, 4 * 2 * 768]);
    const before = tensors.slice(0, tensors.findIndex(({ path }) => path === "words.0") + 1);
    expect(before.reduce((sum, tensor) => sum + tensor.backwardSeconds, 0)).toBeCloseTo(0.21, 2);
  });
});

describe("prices of a cluster", () => {
  const at = (network: (typeof networks)[number], worldSize: number, computing = 0) => ({
    network,
    worldSize,
    computing,
  });

  test("a ring takes 2 (P − 1) steps and 2 (P − 1) / P of the bytes, through the slower of PCIe and the card", () => {
    const slow = ringModel(calibratedCluster, at("10GbE", 8));
    expect(slow.startupSeconds).toBeCloseTo(14 * 1.147e-5, 12);
    expect(slow.secondsPerByte).toBeCloseTo(1.75 * 8.775e-10, 18);
    expect(ringModel(calibratedCluster, at("100GbIB", 8)).secondsPerByte).toBeCloseTo(1.75 * 2.081e-10, 18);
    for (const network of networks)
      expect(ringModel(calibratedCluster, at(network, 4))).toEqual(ringModel(calibratedCluster, at("10GbE", 4)));
  });

  test("a card that grows costs its share more with each doubling of the nodes, a PCIe link nothing", () => {
    const perByte = (network: (typeof networks)[number], worldSize: number): number =>
      ringModel(calibratedCluster, at(network, worldSize)).secondsPerByte / ((2 * (worldSize - 1)) / worldSize);
    expect(perByte("100GbE", 8)).toBeCloseTo(4.101e-10, 18);
    expect(perByte("100GbE", 16)).toBeCloseTo(1.0382 * 4.101e-10, 18);
    expect(perByte("100GbE", 32)).toBeCloseTo(1.0764 * 4.101e-10, 18);
    for (const network of ["10GbE", "100GbIB"] as const) expect(perByte(network, 32)).toBe(perByte(network, 8));
  });

  test("a calibration on one number of nodes finds no growth, and fails on nothing else", () => {
    const known = cells.filter(
      ({ method, network, worldSize }) =>
        (method === "BSP-A2A" || method === "WFBP-A2A") && (network !== "100GbE" || worldSize < 16),
    );
    expect(calibrateCluster(known).cluster.networks["100GbE"].ringGrowthPerDoubling).toBe(0);
  });

  test("PCIe lanes slow down with the share of computing, cards do not", () => {
    const [idle, half, busy] = [0, 0.5, 1].map(
      (computing) => ringModel(calibratedCluster, at("100GbIB", 16, computing)).secondsPerByte,
    );
    expect(busy! / idle!).toBeCloseTo(2.763, 6);
    expect(half! / idle!).toBeCloseTo(1 / (0.5 / 2.763 + 0.5), 6);
    expect(ringModel(calibratedCluster, at("10GbE", 16, 1))).toEqual(ringModel(calibratedCluster, at("10GbE", 16, 0)));
  });

  test("servers take as long for any number of nodes; a negotiation is the least that a collective takes", () => {
    expect(serverModel(calibratedCluster, at("10GbE", 8))).toEqual(serverModel(calibratedCluster, at("10GbE", 32)));
    expect(serverModel(calibratedCluster, at("10GbE", 8)).secondsPerByte).toBeCloseTo(2 * 7.539e-10, 18);
    const [ring, negotiated] = [
      ringModel(calibratedCluster, at("10GbE", 8)),
      negotiatedModel(calibratedCluster, at("10GbE", 8), 1e-3),
    ];
    for (const bytes of [0, 1e3, 1e5, 1e6, 1e8])
      expect(collectiveSeconds(negotiated, bytes)).toBeCloseTo(Math.max(1e-3, collectiveSeconds(ring, bytes)), 9);
  });

  test("a faster network is no slower, whatever the method", () => {
    const { networks: own } = calibratedCluster;
    const faster = {
      ...calibratedCluster,
      networks: {
        ...own,
        "10GbE": {
          ringStepSeconds: 1e-6,
          ringSecondsPerByte: 1e-10,
          ringGrowthPerDoubling: 0,
          serverSecondsPerByte: 1e-10,
        },
      },
    };
    for (const method of methods) {
      const model = "ResNet-50";
      const run = { model, method, network: "10GbE", worldSize: 16 } as const;
      expect(predictIteration(faster, run)).toBeLessThanOrEqual(predictIteration(calibratedCluster, run));
      expect(predictIteration(faster, run)).toBeGreaterThanOrEqual(singleSeconds(model));
    }
  });
});

describe("the seven-method table of 189 measurements", () => {
  const all = predictCells(calibratedCluster, cells);
  const rows = all.filter(({ method }) => allReduceMethods.includes(method));

  test("BSP, WFBP and MG-WFBP are predicted within 6 % in all 81 cells (15 % was asked), half of them within 2 %", () => {
    const { count, median, worst } = summarizeErrors(rows);
    expect(count).toBe(81);
    expect(Math.abs(worst.relativeError)).toBeLessThan(0.06);
    expect(median).toBeLessThan(0.02);
  });

  test("all seven are within 25 %, half of the cells within 3 %", () => {
    const { count, median, worst } = summarizeErrors(all);
    expect(count).toBe(189);
    expect(Math.abs(worst.relativeError)).toBeLessThan(0.25);
    expect(median).toBeLessThan(0.03);
  });

  test("BSP, WFBP and MG-WFBP stand in the measured order in every column, of all seven nine pairs in ten", () => {
    const three = comparePairs(rows);
    expect(three).toHaveLength(66);
    expect(three.filter(isMisordered)).toEqual([]);
    const seven = comparePairs(all);
    expect(seven).toHaveLength(446);
    expect(seven.filter(isMisordered).length).toBeLessThanOrEqual(44);
  });

  test("what a run has that the model lacks stays with it", () => {
    const of8 = all.filter(({ worldSize, method }) => worldSize === 8 && method.startsWith("BSP"));
    const of16 = predictLarger(calibratedCluster, of8);
    for (const [i, { samplesPerSecond, modelSamplesPerSecond, worldSize }] of of16.entries()) {
      expect(worldSize).toBe(16);
      expect(samplesPerSecond / modelSamplesPerSecond).toBeCloseTo(1 + of8[i]!.relativeError, 9);
      // The ratio of measured to predicted at 8 GPUs also corrects BSP at 16 GPUs.
      const { samplesPerSecond: measured } = all.find(
        (cell) =>
          cell.worldSize === 16 &&
          cell.model === of8[i]!.model &&
          cell.method === of8[i]!.method &&
          cell.network === of8[i]!.network,
      )!;
      expect(Math.abs(samplesPerSecond / measured - 1)).toBeLessThan(0.16);
    }
  });
});
