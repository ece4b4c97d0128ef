import type { Job } from "@skein/job/node";
import { type Layer, sideName } from "@skein/second-order";
import { curvaturePlanSchema } from "@skein/step/node";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { CurvatureTimes } from "./measure-curvature.ts";
import { decideCurvature } from "./plan-curvature.ts";

const layer = (path: string, numInputs: number, numOutputs: number): Layer => ({
  path,
  kind: "linear",
  numInputs,
  numOutputs,
  rearrangements: [],
  isTransposed: false,
});

const layers = [layer("first", 64, 256), layer("second", 256, 256), layer("third", 256, 10)];
const jobOf = (form: "spd" | "auto", ranks = 4): Pick<Job, "optimizer" | "ranks"> => ({
  ranks,
  optimizer: {
    kind: "kfac",
    form,
    factorEvery: 1,
    inverseEvery: 1,
    gradientWorkers: 0.5,
    inverse: "cholesky",
    positions: "expand",
    damping: 0.03,
    curvatureDecay: 0.95,
    size: "free",
    klClip: 0.001,
    momentum: 0.9,
    weightDecay: 0,
  },
});

const inOrder = [
  ...layers.map(({ path }) => [path, "input"] as const),
  ...layers.toReversed().map(({ path }) => [path, "gradient"] as const),
];
const timesOf = (broadcastStart: number, inverseSeconds: number): CurvatureTimes => ({
  factors: inOrder.map(([path, side]) => ({ path, side, workSeconds: 0.001 })),
  inverses: [
    { size: 10, seconds: inverseSeconds * (10 / 256) ** 3 },
    { size: 256, seconds: inverseSeconds },
  ],
  secondsPerProduct: 1e-10,
  allReduce: { startupSeconds: 1e-4, secondsPerByte: 1e-9 },
  reduce: { startupSeconds: 1e-4, secondsPerByte: 5e-10 },
  broadcast: { startupSeconds: broadcastStart, secondsPerByte: 1e-9 },
});
const whole = { layers, blockSize: Infinity };
const rowsOf = ({ plan }: ReturnType<typeof decideCurvature>): unknown[] =>
  Object.values(plan.placement.layers).flatMap(({ input, gradient }) => [input, gradient]);

test("inverses are sent where that is fast, and computed everywhere where it is not", () => {
  expect(rowsOf(decideCurvature(jobOf("spd"), whole, timesOf(10, 0.1)))).toEqual(Array(6).fill("everywhere"));
  const sent = rowsOf(decideCurvature(jobOf("spd"), whole, timesOf(1e-6, 1)));
  expect(sent.filter((row) => row !== "everywhere").length).toBeGreaterThanOrEqual(4);
  expect(decideCurvature(jobOf("auto"), whole, timesOf(10, 0.1)).plan.form).toEqual({ kind: "d" });
});

test("an auto job gets the form with the least predicted cost, on the axes that it has; dp is none of them", () => {
  fc.assert(
    fc.property(
      fc.double({ min: 1e-6, max: 0.1, noNaN: true }),
      fc.double({ min: 1e-5, max: 1, noNaN: true }),
      fc.constantFrom(2, 4, 8),
      (start, seconds, ranks) => {
        const { plan, forms } = decideCurvature(jobOf("auto", ranks), whole, timesOf(start, seconds));
        for (const other of forms) expect(forms[0]!.meanStepSeconds).toBeLessThanOrEqual(other.meanStepSeconds);
        expect(plan.form).toEqual(forms[0]!.form);
        for (const { form } of forms) {
          expect(form.kind).not.toBe("dp");
          if ("fraction" in form) expect([1, ranks / 2, ranks]).toContain(form.fraction * ranks);
        }
        const names = layers.flatMap(({ path }) => [sideName(path, "input"), sideName(path, "gradient")]);
        expect(plan.buckets.flat().toSorted()).toEqual(names.toSorted());
        // A checkpoint restores the plan unchanged.
        expect(curvaturePlanSchema.parse(JSON.parse(JSON.stringify(plan)))).toEqual(plan);
      },
    ),
    { numRuns: 50 },
  );
});

test("factors are merged on a slow network, and sent separately where startup costs nothing", () => {
  const slow = { ...timesOf(1e-4, 0.01), allReduce: { startupSeconds: 1, secondsPerByte: 1e-9 } };
  expect(decideCurvature(jobOf("spd"), whole, slow).plan.buckets.length).toBeLessThanOrEqual(2);
  const quick = { ...timesOf(1e-4, 0.01), allReduce: { startupSeconds: 0, secondsPerByte: 1e-9 } };
  expect(decideCurvature(jobOf("spd"), whole, quick).plan.buckets.length).toBeGreaterThan(3);
});
