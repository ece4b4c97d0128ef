import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { placeBalanced } from "../placement/balanced-broadcast.ts";
import { placeEverywhere } from "../placement/inverse-placement.ts";
import { sideName } from "../statistics/collect.ts";
import { planKfacForms, equivalentForms, type KfacForm, placeForm, type PredictedForm } from "./choose-form.ts";
import { factorsInOrder, formStages, inverseStages, meanStepSeconds, type StageOptions } from "./form-stages.ts";
import type { PlannedLayer, StageTimes } from "./stage-times.ts";

const layerOf = (i: number, numInputs: number, numOutputs: number): PlannedLayer => ({
  path: `layer-${i}`,
  kind: "linear",
  numInputs,
  numOutputs,
});

const size = fc.integer({ min: 1, max: 30 });
const someLayers = fc
  .array(fc.tuple(size, size), { minLength: 1, maxLength: 6 })
  .map((sizes) => sizes.map(([numInputs, numOutputs], i) => layerOf(i, numInputs, numOutputs)));

interface Figures {
  readonly factor: number;
  readonly pass: number;
  readonly inverse: number;
  readonly startup: number;
  readonly perElement: number;
}

// Small integers, so that sums are exact and ties are exact.
const figures: fc.Arbitrary<Figures> = fc.record({
  factor: fc.nat(5),
  pass: fc.nat(50),
  inverse: fc.nat(5),
  startup: fc.nat(60),
  perElement: fc.nat(4),
});

const timesOf = ({ factor, pass, inverse, startup, perElement }: Figures): StageTimes => ({
  factorSeconds: ({ numInputs, numOutputs }, side) => factor * (side === "input" ? numInputs : numOutputs),
  passSeconds: () => pass,
  inverseSeconds: (n) => inverse * n ** 2,
  preconditionSeconds: ({ numInputs, numOutputs }) => numInputs * numOutputs,
  allReduceSeconds: (elements) => 2 * (startup + perElement * elements),
  reduceSeconds: (elements) => startup + perElement * elements,
  broadcastSeconds: (elements) => startup + perElement * elements,
});

const numRanks = fc.constantFrom(2, 3, 4, 6);
const messages = fc.constantFrom("per-rank" as const, "per-factor" as const);
const scenes: fc.Arbitrary<StageOptions> = fc
  .tuple(someLayers, numRanks, figures, messages)
  .map(([layers, ranks, times, each]) => ({ layers, numRanks: ranks, times: timesOf(times), messages: each }));

const stagesOf = (form: KfacForm, options: StageOptions) => formStages(placeForm(form, options), options);
const inverseStage = (form: KfacForm, options: StageOptions): number => {
  const { inverseSeconds, inverseCommunicationSeconds } = stagesOf(form, options);
  return inverseSeconds + inverseCommunicationSeconds;
};
const sentOf = ({ placement }: Pick<PredictedForm, "placement">): readonly string[] =>
  Object.entries(placement.layers).flatMap(([path, place]) =>
    (["input", "gradient"] as const).filter((side) => place[side] !== "everywhere").map((side) => sideName(path, side)),
  );

describe("formStages", () => {
  // Two layers, 2 → 3 and 3 → 1: factors A 3 and 6 floats, G 6 and 1; inverses 4, 9, 9, 1; gradients 6 and 3 floats.
  const two = [layerOf(0, 2, 3), layerOf(1, 3, 1)];
  const options: StageOptions = {
    layers: two,
    numRanks: 2,
    times: timesOf({ factor: 1, pass: 0, inverse: 1, startup: 10, perElement: 1 }),
    messages: "per-factor",
  };

  test.each([
    [{ kind: "d" }, [9, 52, 23, 0, 9, 0]],
    // Each rank has a layer: 4 + 9 and 9 + 1; four broadcasts of 16 floats in total.
    [{ kind: "mpd" }, [9, 52, 13, 56, 9, 0]],
    [{ kind: "kaisa", fraction: 1 }, [9, 52, 13, 56, 9, 0]],
    [{ kind: "kaisa", fraction: 0.5 }, [9, 52, 13, 0, 6, 29]],
    // Two reduces: 20 plus the 16 floats.
    [{ kind: "pad", fraction: 0.5 }, [9, 36, 13, 0, 6, 29]],
    [{ kind: "dp" }, [5, 0, 13, 0, 6, 29]],
  ] as const)("by hand: %j", (form, expected) => {
    expect(Object.values(stagesOf(form, options))).toEqual(expected);
  });

  test("one message per rank saves latency", () => {
    const together = { ...options, messages: "per-rank" as const };
    expect(stagesOf({ kind: "mpd" }, together).inverseCommunicationSeconds).toBe(2 * 10 + 16);
    expect(stagesOf({ kind: "kaisa", fraction: 0.5 }, together).preconditionedCommunicationSeconds).toBe(29);
  });

  test("communication that overlaps with the passes does not count", () => {
    const paths = factorsInOrder(two).map(({ name }) => name);
    expect(paths).toEqual(["layer-0:input", "layer-1:input", "layer-1:gradient", "layer-0:gradient"]);
    const times = timesOf({ factor: 1, pass: 20, inverse: 1, startup: 10, perElement: 1 });
    const exposed = (buckets: readonly (readonly string[])[]): number =>
      stagesOf({ kind: "d" }, { ...options, times, buckets }).factorCommunicationSeconds;
    // Ready at 22, 45, 66, 89; all-reduces of 26, 32, 22 and 32 s end at 48, 80, 102, 134, and computation at 89.
    expect(exposed(paths.map((path) => [path]))).toBe(45);
    // Two buckets: 38 s from 45 to 83; 34 s from 89 on.
    expect(exposed([paths.slice(0, 2), paths.slice(2)])).toBe(34);
    // Overlap with the forward pass only: 26 s from 22, 32 s from 48 to 80, then the other two buckets until 134.
    // Exposed from 45 on.
    const forward = { ...options, times, hiddenBehind: ["input"] as const, buckets: paths.map((path) => [path]) };
    expect(stagesOf({ kind: "d" }, forward).factorCommunicationSeconds).toBe(134 - 45);
    expect(() => exposed([paths.slice(1)])).toThrow(/name 3 factors/);
    expect(() => exposed([[...paths.slice(1), "layer-9:input"]])).toThrow(
      /layer-9:input, which is not a side of these layers/,
    );
  });

  test("the diagonal of an embedding is inverted in no time, and sent as a diagonal", () => {
    const embedding: PlannedLayer = { ...layerOf(0, 30_000, 2), kind: "embedding" };
    const { inverseSeconds, inverseCommunicationSeconds } = stagesOf(
      { kind: "mpd" },
      { ...options, layers: [embedding] },
    );
    expect([inverseSeconds, inverseCommunicationSeconds]).toEqual([4, 10 + 30_000 + 10 + 3]);
  });

  test("one rank does everything, and sends nothing, in every variant", () => {
    fc.assert(
      fc.property(scenes, (scene) => {
        const alone = { ...scene, numRanks: 1 };
        const reference = stagesOf({ kind: "d" }, alone);
        for (const form of [...equivalentForms(1), { kind: "dp" } as const]) {
          const stages = stagesOf(form, alone);
          expect(stages).toEqual(reference);
          expect(stages.factorCommunicationSeconds).toBe(0);
          expect(stages.inverseCommunicationSeconds).toBe(0);
          expect(stages.preconditionedCommunicationSeconds).toBe(0);
        }
      }),
    );
  });

  test("the mean weights factors and inverses by their intervals", () => {
    const stages = stagesOf({ kind: "kaisa", fraction: 0.5 }, options);
    expect(meanStepSeconds(stages)).toBe(9 + 52 + 13 + 0 + 6 + 29);
    expect(meanStepSeconds(stages, { factorEvery: 2, inverseEvery: 13 })).toBe(61 / 2 + 1 + 6 + 29);
    expect(() => meanStepSeconds(stages, { inverseEvery: 0 })).toThrow(/inverseEvery is 0/);
  });

  test("rejects invalid times by name", () => {
    const bad = { ...options, times: { ...options.times, broadcastSeconds: () => NaN } };
    expect(() => stagesOf({ kind: "mpd" }, bad)).toThrow(/broadcastSeconds returned NaN/);
    expect(() => formStages({ placement: placeEverywhere([], 2), factors: "mean" }, options)).toThrow(
      /layer-0 is not placed/,
    );
  });
});

describe("the variant spd", () => {
  test("takes at most as long for its inverses as d and mpd", () => {
    fc.assert(
      fc.property(scenes, (scene) => {
        const own = inverseStage({ kind: "spd" }, scene);
        expect(own).toBeLessThanOrEqual(inverseStage({ kind: "d" }, scene));
        expect(own).toBeLessThanOrEqual(inverseStage({ kind: "mpd" }, scene));
      }),
      { numRuns: 300 },
    );
  });

  test("a comparison per factor can be slower than inverting all everywhere; spd cannot", () => {
    const layers = [layerOf(0, 4, 1)];
    const options: StageOptions = {
      layers,
      numRanks: 2,
      times: { ...timesOf({ factor: 0, pass: 0, inverse: 1, startup: 5, perElement: 1 }) },
    };
    const { inverseSeconds, broadcastSeconds } = options.times;
    const compared = inverseStages(
      placeBalanced(layers, 2, { inverseSeconds, broadcastSeconds: (n) => broadcastSeconds((n * (n + 1)) / 2, 2) }),
      options,
    );
    expect(Object.values(compared)).toEqual([17, 15]);
    expect(inverseStage({ kind: "d" }, options)).toBe(17);
    expect(inverseStage({ kind: "spd" }, options)).toBe(17);
  });

  test("sends the slowest factors, and none without a gain", () => {
    const layers = [layerOf(0, 2, 30), layerOf(1, 30, 2), layerOf(2, 3, 4)];
    const sent = (startup: number): readonly string[] => {
      const times = timesOf({ factor: 0, pass: 0, inverse: 1, startup, perElement: 0 });
      return sentOf(placeForm({ kind: "spd" }, { layers, numRanks: 2, times, messages: "per-factor" }));
    };
    expect(sent(10)).toEqual(["layer-0:gradient", "layer-1:input"]);
    // Sending one factor saves no work on any rank here. Sending two factors saves as much time as their latency costs.
    expect(sent(450)).toEqual([]);
  });

  test("slower broadcasts only move factors from sent to inverted everywhere", () => {
    fc.assert(
      fc.property(someLayers, numRanks, figures, figures, (layers, ranks, base, more) => {
        const sentAt = ({ startup, perElement }: Pick<Figures, "startup" | "perElement">): readonly string[] =>
          sentOf(
            placeForm(
              { kind: "spd" },
              {
                layers,
                numRanks: ranks,
                times: timesOf({ ...base, startup, perElement }),
                messages: "per-factor",
              },
            ),
          );
        const dear = sentAt({ startup: base.startup + more.startup, perElement: base.perElement + more.perElement });
        const cheap = sentAt(base);
        for (const name of dear) expect(cheap).toContain(name);
      }),
      { numRuns: 300 },
    );
  });
});

describe("planKfacForms", () => {
  test("its first result is the best of all requested variants", () => {
    fc.assert(
      fc.property(scenes, fc.integer({ min: 1, max: 9 }), (scene, inverseEvery) => {
        const predicted = planKfacForms({ ...scene, inverseEvery });
        const forms = equivalentForms(scene.numRanks);
        expect(new Set(predicted.map(({ form }) => JSON.stringify(form)))).toEqual(
          new Set(forms.map((form) => JSON.stringify(form))),
        );
        for (const form of forms)
          expect(predicted[0].meanStepSeconds).toBeLessThanOrEqual(
            meanStepSeconds(stagesOf(form, scene), { inverseEvery }),
          );
        for (const { form, stages, meanStepSeconds: seconds } of predicted) {
          expect(stages).toEqual(stagesOf(form, scene));
          expect(seconds).toBe(meanStepSeconds(stages, { inverseEvery }));
        }
      }),
    );
  });

  test("sorts the simplest first among equals: all are equal on one rank, and if nothing takes time", () => {
    fc.assert(
      fc.property(scenes, (scene) => {
        expect(planKfacForms({ ...scene, numRanks: 1 })[0].form).toEqual({ kind: "d" });
        const free = timesOf({ factor: 0, pass: 0, inverse: 0, startup: 0, perElement: 0 });
        const nothing = { ...free, preconditionSeconds: () => 0 };
        expect(
          planKfacForms({ ...scene, times: nothing, forms: equivalentForms(scene.numRanks).toReversed() })[0].form,
        ).toEqual({ kind: "d" });
      }),
    );
  });

  test("returns dp only on request, however fast it is", () => {
    const options: StageOptions = {
      layers: [layerOf(0, 20, 20), layerOf(1, 20, 20)],
      numRanks: 2,
      times: timesOf({ factor: 50, pass: 0, inverse: 50, startup: 1, perElement: 1 }),
    };
    expect(planKfacForms(options).some(({ form }) => form.kind === "dp")).toBe(false);
    expect(planKfacForms({ ...options, forms: [...equivalentForms(2), { kind: "dp" }] })[0].form).toEqual({
      kind: "dp",
    });
    expect(() => planKfacForms({ ...options, forms: [] })).toThrow(/no forms were given/);
    expect(() => planKfacForms({ ...options, forms: [{ kind: "kaisa", fraction: 0.8 }] })).toThrow(/do not divide/);
  });

  test("fast communication distributes the work, slow communication keeps it local", () => {
    const layers = [layerOf(0, 30, 30), layerOf(1, 30, 30), layerOf(2, 30, 30)];
    const best = (startup: number, perElement: number): string =>
      planKfacForms({
        layers,
        numRanks: 3,
        times: timesOf({ factor: 1, pass: 0, inverse: 5, startup, perElement }),
        forms: [{ kind: "d" }, { kind: "mpd" }],
      })[0].form.kind;
    expect(best(1, 1)).toBe("mpd");
    expect(best(1, 9)).toBe("d");
  });
});
