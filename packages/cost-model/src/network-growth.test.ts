import { publishedLinks } from "@skein/published-measurements";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fitNetworkGrowth, grownSecondsPerByte, type GrowthSample } from "./network-growth.ts";

const perByte = fc.double({ min: 1e-12, max: 1e-6, noNaN: true });
const share = fc.double({ min: 0, max: 2, noNaN: true });
const hosts = fc.uniqueArray(fc.integer({ min: 1, max: 512 }), { minLength: 2, maxLength: 6 });

describe("growth of a network with its hosts", () => {
  test("recovers the growth that generated its samples, in any order", () => {
    fc.assert(
      fc.property(perByte, share, hosts, (secondsPerByte, sharePerDoubling, sizes) => {
        const growth = { numHosts: Math.min(...sizes), sharePerDoubling };
        const samples = sizes.map((numHosts) => ({
          numHosts,
          secondsPerByte: grownSecondsPerByte(secondsPerByte, growth, numHosts),
        }));
        const fit = fitNetworkGrowth(samples);
        expect(fit.secondsPerByte / secondsPerByte).toBeCloseTo(1, 6);
        expect(fit.growth.numHosts).toBe(growth.numHosts);
        expect(fit.growth.sharePerDoubling).toBeCloseTo(sharePerDoubling, 4);
      }),
      { seed: 11, numRuns: 100 },
    );
  });

  test("samples that scatter by a factor of 2 give costs above 0 that do not decrease with the number of hosts", () => {
    const scattered = fc.double({ min: 1e-9, max: 2e-9, noNaN: true });
    const samples = fc.array(fc.record({ numHosts: fc.integer({ min: 1, max: 64 }), secondsPerByte: scattered }), {
      minLength: 2,
      maxLength: 8,
    });
    fc.assert(
      fc.property(samples, (given) => {
        fc.pre(new Set(given.map(({ numHosts }) => numHosts)).size > 1);
        const { secondsPerByte, growth } = fitNetworkGrowth(given);
        const costs = [1, 2, 3, 4, 8, 64, 4096].map((n) => grownSecondsPerByte(secondsPerByte, growth, n));
        expect(costs[0]).toBeGreaterThan(0);
        for (const [i, cost] of costs.slice(1).entries()) expect(cost).toBeGreaterThanOrEqual(costs[i]!);
      }),
      { seed: 12, numRuns: 200 },
    );
  });

  test("a network that becomes faster with more hosts has no growth", () => {
    const { growth } = fitNetworkGrowth([
      { numHosts: 2, secondsPerByte: 2e-9 },
      { numHosts: 4, secondsPerByte: 1e-9 },
    ]);
    expect(growth.sharePerDoubling).toBe(0);
  });

  test("16 ranks over InfiniBand are predicted from 2, 4 and 8, where a ring alone is 40 % too fast", () => {
    // The published fits are for whole all-reduces; a ring sends 2 (P − 1) / P times the vector's bytes over each link.
    const links = publishedLinks.filter(({ network }) => /InfiniBand|GPUs of a node/.test(network));
    const sampleOf = ({ worldSize, secondsPerByte }: (typeof links)[number]): GrowthSample => ({
      numHosts: worldSize,
      secondsPerByte: secondsPerByte / ((2 * (worldSize - 1)) / worldSize),
    });
    const [known, [largest]] = [
      links.filter(({ worldSize }) => worldSize < 16),
      links.filter((l) => l.worldSize === 16),
    ];
    const { secondsPerByte, growth } = fitNetworkGrowth(known.map(sampleOf));
    const predicted = grownSecondsPerByte(secondsPerByte, growth, 16);
    expect(Math.abs(predicted / sampleOf(largest!).secondsPerByte - 1)).toBeLessThan(0.02);
    const alone = known.reduce((sum, link) => sum + sampleOf(link).secondsPerByte, 0) / known.length;
    expect(alone / sampleOf(largest!).secondsPerByte).toBeLessThan(0.7);
  });

  test("rejects samples of one number of hosts, and invalid measurements", () => {
    expect(() => fitNetworkGrowth([{ numHosts: 2, secondsPerByte: 1e-9 }])).toThrow(
      "fitNetworkGrowth: all 1 samples are of 2 hosts; growth needs two numbers of hosts, such as 2 and 4",
    );
    for (const wrong of [
      { numHosts: 0, secondsPerByte: 1e-9 },
      { numHosts: 4, secondsPerByte: -1e-9 },
      { numHosts: 4, secondsPerByte: Number.NaN },
    ])
      expect(() => fitNetworkGrowth([{ numHosts: 2, secondsPerByte: 1e-9 }, wrong])).toThrow("is not a measurement");
    const contradictory = [
      { numHosts: 1, secondsPerByte: 9.258684589449588e-12 },
      { numHosts: 4, secondsPerByte: 1e-12 },
      { numHosts: 26, secondsPerByte: 4.209519486936253e-12 },
    ];
    expect(() => fitNetworkGrowth(contradictory)).toThrow("the best line is 0 s/byte at 1 hosts");
  });
});
