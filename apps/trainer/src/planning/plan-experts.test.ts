import {
  backwardChunksOf,
  type DispatchChoice,
  dispatchSeconds,
  type DispatchWay,
  type PredictedDispatch,
} from "@skein/cost-model/planners";
import {
  type ExpertsJob,
  expertsOf,
  firstCoordinates,
  type Job,
  meshOf,
  parseJob,
  parseOverride,
} from "@skein/job/node";
import {
  buildExperts,
  dispatchChoices,
  type ExpertsPlan,
  isExpertsPlanFor,
  isExpertsPlanned,
  maxChunksOf,
  settledExperts,
} from "@skein/step/node";
import { randomKey, type Tensor, trace, valueAndGrad, mean } from "@skein/tensor-core";
import { eliminateDeadCode } from "@skein/tensor-core/backend";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  choicesToTime,
  fastestMeasured,
  possibleChoices,
  remarkOnExperts,
  type TimedDispatch,
} from "./plan-experts.ts";

const text = `
name: small
seed: 1
ranks: 4
batch: 8
steps: 1
data: { kind: moby-dick, window: 16, trainSamples: 400, testSamples: 30 }
model: { kind: gpt, layers: 2, heads: 4, width: 16, experts: { count: 8, topK: 2, dispatch: auto, chunks: auto } }
mesh: { expert: 4 }
optimizer: { kind: adamw }
learningRate: { peak: 0.01 }
compression: { kind: identity }
evaluation: { batch: 8 }
`;
const jobOf = (...set: string[]): Job & { readonly experts: ExpertsJob } => {
  const job = parseJob(
    text,
    "job.yaml",
    set.map((value) => parseOverride(value)),
  );
  return { ...job, experts: expertsOf(job)! };
};
const levels = "mesh={expert: 4, expertLevels: [2, 2]}";
const waysOf = (job: ReturnType<typeof jobOf>): readonly DispatchWay[] => [
  ...new Set(dispatchChoices(job.experts, job.mesh).map(({ way }) => way)),
];

describe("choices of a plan", () => {
  test.each<[readonly string[], readonly DispatchWay[]]>([
    [[], ["ragged", "dense", "duplicate-free"]],
    [[levels], ["ragged", "dense", "duplicate-free", "hierarchical"]],
    [["mesh={expert: 4, expertLevels: [4, 1]}"], ["ragged", "dense", "duplicate-free"]],
    [["mesh={expert: 1}"], ["ragged", "dense"]],
    [["model.experts.gate=soft"], ["dense"]],
    [["model.experts.placement={everySteps: 2, when: pays}"], ["ragged", "duplicate-free"]],
    [["model.experts.dispatch=hierarchical"], ["hierarchical"]],
  ])("with %j tokens are exchanged as %j", (set, ways) => expect(waysOf(jobOf(...set))).toEqual(ways));

  test("chunks set by a job stay, and on one rank nothing is chunked", () => {
    const chunksOf = (...set: string[]): readonly number[] => {
      const { experts, mesh } = jobOf(...set);
      return [...new Set(dispatchChoices(experts, mesh).map(({ numChunks }) => numChunks))];
    };
    expect(chunksOf()).toEqual([1, 2, 4, 8]);
    expect(chunksOf("model.experts.chunks=3")).toEqual([3]);
    expect(chunksOf("mesh={expert: 1}")).toEqual([1]);
  });

  test("chunks of the backward pass are planned for slots only", () => {
    const pairsOf = (...set: string[]): readonly string[] => {
      const { experts, mesh } = jobOf("model.experts.backwardChunks=auto", ...set);
      return dispatchChoices(experts, mesh)
        .filter(({ way, backwardChunks }) => way === "dense" || backwardChunks !== undefined)
        .map((choice) => `${choice.way} ${choice.numChunks} ${backwardChunksOf(choice)}`);
    };
    const degrees = [1, 2, 4, 8];
    const all = degrees.flatMap((forward) => degrees.map((backward) => `dense ${forward} ${backward}`));
    expect(pairsOf().toSorted()).toEqual(all);
    expect(pairsOf("model.experts.dispatch=dense")[0]).toBe("dense 1 1");
    expect(pairsOf("model.experts.chunks=3")).toEqual(["dense 3 3", ...degrees.map((one) => `dense 3 ${one}`)]);
    expect(pairsOf("mesh={expert: 1}")).toEqual(["dense 1 1"]);
    const named = jobOf("model.experts.dispatch=dense", "model.experts.backwardChunks=4");
    expect(dispatchChoices(named.experts, named.mesh).map(backwardChunksOf)).toEqual([4, 4, 4, 4]);
  });

  test("no more chunks than slots or tokens", () => {
    const { experts, mesh } = jobOf();
    const possible = possibleChoices(dispatchChoices(experts, mesh), { numTokens: 4, slots: 1 });
    expect(possible.filter(({ way }) => way === "dense")).toEqual([{ way: "dense", numChunks: 1 }]);
    expect(Math.max(...possible.map(({ numChunks }) => numChunks))).toBe(4);
    const apart = dispatchChoices({ ...experts, backwardChunks: "auto" }, mesh);
    const maxOf = possibleChoices(apart, { numTokens: 4, slots: 2 }).filter(({ way }) => way === "dense");
    expect(maxOf.map((choice) => [choice.numChunks, backwardChunksOf(choice)])).toEqual([
      [1, 1],
      [1, 2],
      [2, 2],
      [2, 1],
    ]);
  });
});

describe("a known plan", () => {
  const planOf = (own: Partial<ExpertsPlan> = {}): ExpertsPlan => ({ dispatch: "ragged", chunks: 4, ...own });

  test("is valid for jobs that could have made it", () => {
    const plan = planOf({ dispatch: "hierarchical" });
    expect(isExpertsPlanned(jobOf(levels))).toBe(true);
    expect(isExpertsPlanFor(plan, jobOf(levels))).toBe(true);
    for (const other of [jobOf(), jobOf(levels, "model.experts.gate=soft"), jobOf(levels, "model.experts.chunks=2")])
      expect(isExpertsPlanFor(plan, other)).toBe(false);
    expect(isExpertsPlanned(jobOf("model.experts.dispatch=dense", "model.experts.chunks=1"))).toBe(false);
  });

  test("with backward chunks is for jobs that leave them open", () => {
    const plan = planOf({ dispatch: "dense", backwardChunks: 2 });
    const open = jobOf("model.experts.backwardChunks=auto");
    const { dispatch, chunks, backwardChunks } = settledExperts(open.experts, open.mesh, plan);
    expect([dispatch, chunks, backwardChunks]).toEqual(["dense", 4, 2]);
    expect(settledExperts(open.experts, open.mesh, undefined).backwardChunks).toBeUndefined();
    expect(isExpertsPlanFor(plan, open)).toBe(true);
    expect(isExpertsPlanFor(plan, jobOf())).toBe(false);
    // A number of backward chunks equal to the forward number must be omitted.
    expect(isExpertsPlanFor({ ...plan, backwardChunks: 4 }, jobOf())).toBe(true);
    const only = ["dispatch=dense", "chunks=4", "backwardChunks=auto"].map((one) => `model.experts.${one}`);
    expect(isExpertsPlanned(jobOf(...only))).toBe(true);
    expect(isExpertsPlanFor(plan, jobOf(...only))).toBe(true);
  });

  test("replaces auto, and nothing else", () => {
    const plan = planOf();
    const settled = (known: ExpertsPlan | undefined, ...set: string[]): readonly unknown[] => {
      const { experts, mesh } = jobOf(...set);
      const { dispatch, chunks } = settledExperts(experts, mesh, known);
      return [dispatch, chunks];
    };
    expect(settled(plan)).toEqual(["ragged", 4]);
    expect(settled(undefined)).toEqual(["ragged", 1]);
    expect(settled(undefined, "model.experts.gate=soft")).toEqual(["dense", 1]);
    expect(settled(plan, "model.experts.dispatch=dense")).toEqual(["dense", 4]);
    expect(settled(plan, "model.experts.chunks=2")).toEqual(["ragged", 2]);
  });
});

test("the cost model knows all collectives of a layer", () => {
  const one = { startupSeconds: 1, secondsPerByte: 0 };
  const collectives: Readonly<Record<string, number>> = { "all-to-all": 1, "all-gather": 1, "ragged-all-to-all": 2 };
  for (const set of [[], [levels]]) {
    const job = jobOf(...set, "model.experts.backwardChunks=auto");
    const mesh = meshOf(job);
    for (const choice of dispatchChoices(job.experts, job.mesh).filter((each) => maxChunksOf(each) <= 2)) {
      const { way, numChunks, backwardChunks } = choice;
      const settled = { ...job.experts, dispatch: way, chunks: numChunks, backwardChunks };
      const { layer } = buildExperts(settled, 16, job.mesh);
      const { graph } = trace(
        (key: Tensor, x: Tensor) => {
          const { params, state } = layer.init(key);
          const given = { params, x };
          return valueAndGrad((own: typeof given) =>
            mean(layer.apply(own.params, state, own.x, { train: true, key })[0]),
          )(given);
        },
        [randomKey(1), { dtype: "f32", shape: [1, 32, 16] }] as never,
        { mesh, place: firstCoordinates(mesh) },
      );
      const counted = eliminateDeadCode(graph).nodes.reduce((sum, { op }) => sum + (collectives[op] ?? 0), 0);
      const numLevels = set.length === 0 ? 0 : 2;
      // So large that the wait for one chunk is the total time: all streams except one are idle.
      const predicted = dispatchSeconds(
        { way, numChunks: 1 },
        { numTokens: 32, width: 16, numExperts: 8, expertsPerToken: 2, slots: 8 },
        { numRanks: 4, flat: one, levels: Array.from({ length: numLevels }, () => ({ size: 2, model: one })) },
        { expertSeconds: 0, chunkSeconds: 0, otherSeconds: 0 },
      );
      // Slots are sent as often in the backward pass as in the forward pass; other operations have no backward chunks.
      const times = (numChunks + backwardChunksOf(choice)) / 2;
      expect([way, numChunks, counted]).toEqual([way, numChunks, times * predicted]);
    }
  }
});

describe("the choice", () => {
  const flat: DispatchChoice = { way: "ragged", numChunks: 1 };
  const nameOf = ({ way, numChunks }: DispatchChoice): string => `${way} ${numChunks}`;
  const { experts, mesh } = jobOf(levels);
  const all = dispatchChoices(experts, mesh);
  const predictions: fc.Arbitrary<readonly PredictedDispatch[]> = fc
    .array(fc.oneof(fc.nat(5), { weight: 4, arbitrary: fc.integer({ min: 2, max: 40 }) }), {
      minLength: all.length,
      maxLength: all.length,
    })
    .map((seconds) => all.map((choice, i) => ({ ...choice, seconds: seconds[i]! })))
    .map((some) => some.toSorted((a, b) => a.seconds - b.seconds));
  const timesOf = (some: readonly PredictedDispatch[]): fc.Arbitrary<[TimedDispatch, ...TimedDispatch[]]> =>
    fc
      .array(fc.nat(3), { minLength: some.length, maxLength: some.length })
      .map((times) => some.map((one, i) => ({ ...one, measuredSeconds: times[i]! })) as [TimedDispatch]);

  test("times the flat method and four of those that may be fastest, each once", () => {
    fc.assert(
      fc.property(predictions, (predicted) => {
        const [first, ...others] = choicesToTime(predicted, flat);
        expect(first).toMatchObject(flat);
        const best = predicted[0]!.seconds;
        const possible = predicted.filter(({ seconds, ...one }) => seconds <= 2 * best && nameOf(one) !== nameOf(flat));
        expect(others).toEqual(possible.slice(0, 4));
      }),
    );
  });

  test("is never slower than the flat method, and among equal ones the flat one, then the one with fewest chunks", () => {
    fc.assert(
      fc.property(
        predictions.chain((predicted) => timesOf(choicesToTime(predicted, flat))),
        (timed) => {
          const chosen = fastestMeasured(timed);
          const best = Math.min(...timed.map(({ measuredSeconds }) => measuredSeconds));
          expect(chosen.measuredSeconds).toBe(best);
          if (timed[0].measuredSeconds === best) expect(chosen).toBe(timed[0]);
          else
            for (const { measuredSeconds, numChunks } of timed.slice(1))
              if (measuredSeconds === best) expect(chosen.numChunks).toBeLessThanOrEqual(numChunks);
        },
      ),
    );
  });

  test("is reported in a line, next to the flat method", () => {
    const one: TimedDispatch = { ...flat, seconds: 0.01, measuredSeconds: 0.012 };
    const other: TimedDispatch = { way: "duplicate-free", numChunks: 2, seconds: 0.005, measuredSeconds: 0.006 };
    expect(remarkOnExperts(other, [one, other], 16)).toBe(
      "token dispatch to experts: duplicate-free in 2 chunks, the fastest of 2 measured and 16 predicted choices; a layer takes 6.00 ms (predicted 5.00 ms), ragged in 1 chunk 12.0 ms (predicted 10.0 ms), with random tokens",
    );
    expect(remarkOnExperts(one, [one, other], 16)).not.toContain("10.0 ms), ragged");
    const apart: TimedDispatch = { ...other, way: "dense", backwardChunks: 1 };
    expect(remarkOnExperts(apart, [one, apart], 16)).toMatch(
      /^token dispatch to experts: dense in 2 chunks and back in 1, /,
    );
  });
});
