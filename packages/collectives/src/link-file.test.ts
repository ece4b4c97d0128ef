import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fitLink, formatLinkFile, type LinkFile, linkCosts } from "./link-file.ts";
import { LinkFileError, parseLinkFile } from "./parse-link-file.ts";

const file: LinkFile = {
  format: "skein-links",
  version: 1,
  measuredAt: "2026-01-02T03:04:05Z",
  machine: "2 cores, 4.2 GHz",
  transport: "tcp",
  messageBytes: [0, 4096, 2 ** 20],
  hosts: [[0, 1], [2]],
  within: { secondsPerMessage: 1e-5, secondsPerByte: 1e-10, r2: 0.999, worstRelativeError: 0.05 },
  across: { secondsPerMessage: 4e-5, secondsPerByte: 8e-10, r2: 0.99, worstRelativeError: 0.1 },
  pairs: [{ from: 0, to: 2, secondsPerMessage: 4e-5, secondsPerByte: 8e-10, r2: 0.99, worstRelativeError: 0.1 }],
  reduceSecondsPerByte: 2.5e-10,
};

describe("a fit", () => {
  test("finds the exact line of the times, for any sizes", () => {
    const parts = fc.tuple(
      fc.double({ min: 1e-7, max: 1e-2, noNaN: true }),
      fc.double({ min: 1e-11, max: 1e-7, noNaN: true }),
    );
    fc.assert(
      fc.property(
        parts,
        fc.uniqueArray(fc.integer({ min: 0, max: 2 ** 26 }), { minLength: 2, maxLength: 12 }),
        ([alpha, beta], sizes) => {
          const spread = Math.max(...sizes) - Math.min(...sizes);
          fc.pre(beta * spread > alpha * 1e-3); // Otherwise rounding errors dominate the slope.
          const fit = fitLink(sizes.map((bytes) => ({ bytes, seconds: alpha + beta * bytes })));
          expect(fit.worstRelativeError).toBeLessThan(1e-6);
          expect(fit.r2).toBeCloseTo(1, 6);
        },
      ),
    );
  });

  test("weighs small messages like large ones", () => {
    // 10 µs and 1 GB/s, with 5 % of noise on the largest times; a fit of absolute errors would not recover α.
    const samples = [0, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].map((bytes, i) => ({
      bytes,
      seconds: (10e-6 + bytes * 1e-9) * (i > 3 ? 1 + 0.05 * (-1) ** i : 1),
    }));
    const { secondsPerMessage, secondsPerByte, worstRelativeError } = fitLink(samples);
    expect(secondsPerMessage / 10e-6).toBeCloseTo(1, 1);
    expect(secondsPerByte / 1e-9).toBeCloseTo(1, 1);
    expect(worstRelativeError).toBeLessThan(0.1);
  });

  test("has the smallest relative errors of all lines with α, β ≥ 0", () => {
    const sample = fc.record({
      bytes: fc.integer({ min: 0, max: 1e6 }),
      seconds: fc.double({ min: 1e-6, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(
        fc.array(sample, { minLength: 3, maxLength: 8 }),
        fc.double({ min: 0.5, max: 2, noNaN: true }),
        fc.double({ min: 0.5, max: 2, noNaN: true }),
        (samples, a, b) => {
          fc.pre(new Set(samples.map(({ bytes }) => bytes)).size > 1);
          const { secondsPerMessage: alpha, secondsPerByte: beta } = fitLink(samples);
          expect(Math.min(alpha, beta)).toBeGreaterThanOrEqual(0);
          const left = (x: number, y: number): number =>
            samples.reduce((sum, { bytes, seconds }) => sum + ((x + y * bytes) / seconds - 1) ** 2, 0);
          for (const other of [
            left(a * alpha, b * beta),
            left(alpha + (a - 0.5) * 1e-5, beta),
            left(alpha, beta + (b - 0.5) * 1e-9),
          ])
            expect(left(alpha, beta)).toBeLessThanOrEqual(other * (1 + 1e-9) + 1e-9);
        },
      ),
    );
  });

  test("rejects samples of one size, or with times that are not positive", () => {
    expect(() =>
      fitLink([
        { bytes: 8, seconds: 1 },
        { bytes: 8, seconds: 2 },
      ]),
    ).toThrow(/2 samples of one size/);
    expect(() =>
      fitLink([
        { bytes: 8, seconds: 1 },
        { bytes: 9, seconds: 0 },
      ]),
    ).toThrow(/9 bytes cannot take 0 s/);
  });
});

describe("a link file", () => {
  test("is parsed as it was written", () => expect(parseLinkFile(formatLinkFile(file), "links.json")).toEqual(file));

  test("a class of links that the job does not have gets the costs of the other", () => {
    const { across, ...oneHost } = file;
    expect(linkCosts(oneHost).across).toEqual({ secondsPerMessage: 1e-5, secondsPerByte: 1e-10 });
    expect(linkCosts(file)).toEqual({
      within: { secondsPerMessage: 1e-5, secondsPerByte: 1e-10 },
      across: { secondsPerMessage: 4e-5, secondsPerByte: 8e-10 },
      reduceSecondsPerByte: 2.5e-10,
    });
    expect(across).toBeDefined();
  });

  const { within, across, ...neither } = file;
  test.each([
    ["", /links.json is not JSON/],
    ["{", /links.json is not JSON/],
    [JSON.stringify({ ...file, version: 2 }), /is not a link file of version 1 \(version: /],
    [JSON.stringify({ ...file, within: { ...within, secondsPerByte: -1 } }), /within\.secondsPerByte: /],
    [JSON.stringify({ ...file, across: { ...across, r2: "good" } }), /across\.r2: /],
    [JSON.stringify(neither), /neither links within a host nor across hosts were measured/],
    [JSON.stringify({ ...file, reduceSecondsPerByte: undefined }), /reduceSecondsPerByte: /],
    ["[]", /is not a link file/],
  ])("is rejected with one line if it is invalid: %s", (text, problem) => {
    expect(() => parseLinkFile(text, "links.json")).toThrow(problem);
    try {
      parseLinkFile(text, "links.json");
    } catch (error) {
      expect(error).toBeInstanceOf(LinkFileError);
      expect((error as Error).message).not.toContain("\n");
      expect((error as Error).message).toContain('measure the links again with "skein-train links"');
    }
  });
});
