import { threefry2x32 } from "@skein/tensor-core/backend";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fitLeastSquares } from "./fit-least-squares.ts";

const xs = Array.from({ length: 24 }, (_, i) => (i + 1) / 4);
/** Returns the value of a test model that is not linear in its last parameter. */
const curve = (x: number, [a, b, c]: readonly number[]): number => a! + b! * x ** c!;
const noise = (i: number): number => threefry2x32([11, 0], [i, 0])[0] / 2 ** 31 - 1;
const relative = (t: readonly number[], model: (x: number) => number): number[] =>
  xs.map((x, i) => model(x) / t[i]! - 1);

const positive = fc.double({ min: 0.1, max: 10, noNaN: true });

describe("fitLeastSquares", () => {
  test("recovers the parameters of exact times, with errors near 0", () => {
    fc.assert(
      fc.property(positive, positive, fc.double({ min: 1.2, max: 3, noNaN: true }), (...truth) => {
        const times = xs.map((x) => curve(x, truth));
        const { parameters, standardErrors, residual, converged } = fitLeastSquares(
          (logs) =>
            relative(times, (x) =>
              curve(
                x,
                logs.map((log) => Math.exp(log)),
              ),
            ),
          [0.01, 0.01, 0.01],
          { tolerance: 1e-12 },
        );
        expect(converged).toBe(true);
        for (const [k, log] of parameters.entries()) expect(Math.abs(Math.exp(log) / truth[k]! - 1)).toBeLessThan(1e-3);
        expect(residual).toBeLessThan(1e-5);
        for (const error of standardErrors) expect(error).toBeLessThan(1e-2);
      }),
      { numRuns: 40 },
    );
  });

  test("equals the solution of the normal equations for a linear model", () => {
    const times = xs.map((x, i) => 2 + 3 * x + noise(i));
    const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
    const [x̄, t̄] = [mean(xs), mean(times)];
    const spread = xs.reduce((sum, x) => sum + (x - x̄) ** 2, 0);
    const slope = xs.reduce((sum, x, i) => sum + (x - x̄) * (times[i]! - t̄), 0) / spread;
    const rest = xs.reduce((sum, x, i) => sum + (times[i]! - t̄ - slope * (x - x̄)) ** 2, 0) / (xs.length - 2);
    const fit = fitLeastSquares((p) => xs.map((x, i) => p[0]! + p[1]! * x - times[i]!), [1, 1]);
    expect(fit.parameters[0]).toBeCloseTo(t̄ - slope * x̄, 6);
    expect(fit.parameters[1]).toBeCloseTo(slope, 6);
    expect(fit.residual).toBeCloseTo(Math.sqrt(rest), 6);
    // Standard errors of the slope and the intercept of a straight line, by the textbook formulas.
    expect(fit.standardErrors[1]).toBeCloseTo(Math.sqrt(rest / spread), 6);
    expect(fit.standardErrors[0]).toBeCloseTo(Math.sqrt(rest * (1 / xs.length + x̄ ** 2 / spread)), 6);
  });

  test("does not depend on the units of parameters and residuals", () => {
    const times = xs.map((x, i) => curve(x, [1, 0.5, 1.5]) * (1 + 0.02 * noise(i)));
    const fitIn = (units: readonly number[], unit: number) =>
      fitLeastSquares(
        (p) =>
          xs.map(
            (x, i) =>
              unit *
              (curve(
                x,
                p.map((value, k) => value * units[k]!),
              ) -
                times[i]!),
          ),
        [0.5, 0.5, 1].map((value, k) => value / units[k]!),
      );
    const [plain, scaled] = [fitIn([1, 1, 1], 1), fitIn([1e-9, 1e6, 42], 1e3)];
    for (const [k, unit] of [1e-9, 1e6, 42].entries()) {
      expect((scaled.parameters[k]! * unit) / plain.parameters[k]!).toBeCloseTo(1, 5);
      expect((scaled.standardErrors[k]! * unit) / plain.standardErrors[k]!).toBeCloseTo(1, 4);
    }
    expect(scaled.residual / plain.residual).toBeCloseTo(1e3, 3);
  });

  test("reports larger errors for noisier samples, and three standard errors contain the true value", () => {
    const truth = [1, 0.5, 1.5];
    const fits = [0.001, 0.01, 0.05].map((share) => {
      const times = xs.map((x, i) => curve(x, truth) * (1 + share * noise(i)));
      return fitLeastSquares((p) => relative(times, (x) => curve(x, p)), [0.8, 0.8, 0.8]);
    });
    for (const k of truth.keys()) {
      const errors = fits.map(({ standardErrors }) => standardErrors[k]!);
      expect(errors).toEqual(errors.toSorted((a, b) => a - b));
      for (const { parameters, standardErrors } of fits)
        expect(Math.abs(parameters[k]! - truth[k]!)).toBeLessThan(3 * standardErrors[k]!);
    }
    expect(fits[2]!.standardErrors[0]! / fits[0]!.standardErrors[0]!).toBeGreaterThan(20);
  });

  test("as many samples as parameters give the parameters, without standard errors", () => {
    const { parameters, standardErrors, residual } = fitLeastSquares(([a, b]) => [a! + b! - 3, a! - b! - 1], [0, 0]);
    expect(parameters.map((value) => value.toFixed(6))).toEqual(["2.000000", "1.000000"]);
    expect([...standardErrors, residual]).toEqual([Number.NaN, Number.NaN, Number.NaN]);
  });

  test("does not step to parameters at which the model is not finite", () => {
    const { parameters } = fitLeastSquares(([a]) => [Math.sqrt(a!) - 0.1, Math.sqrt(a!) - 0.1], [100]);
    expect(parameters[0]).toBeCloseTo(0.01, 6);
  });
});

describe("fitLeastSquares refuses", () => {
  test.each([
    [
      "fewer samples than parameters",
      () => fitLeastSquares(([a, b]) => [a! + b!], [1, 1]),
      "1 samples for 2 parameters",
    ],
    ["no parameter", () => fitLeastSquares(() => [1], []), "for 0 parameters"],
    [
      "a start without numbers",
      () => fitLeastSquares(([a]) => [Math.sqrt(a!)], [-1]),
      "the sum of squares is NaN at the start [-1]",
    ],
    [
      "a parameter without effect",
      () => fitLeastSquares(([a]) => [a! - 1, a! - 2], [1, 1]),
      "parameter 1 of 2 changes no residual",
    ],
    [
      "two that only count together",
      () => fitLeastSquares(([a, b]) => [a! + b!, a! + b! - 1, 1], [1, 2]),
      "cannot be separated from the others",
    ],
    [
      "residuals that become fewer",
      () => fitLeastSquares(([a]) => (a! > 1 ? [a!] : [a!, a! + 1]), [1]),
      "the model returned 1 residuals for parameters",
    ],
    ["an option that is none", () => fitLeastSquares(([a]) => [a!], [1], { relativeStep: 0 }), "relativeStep is 0"],
  ])("%s", (_, fit, message) => {
    expect(fit).toThrow(message);
  });
});
