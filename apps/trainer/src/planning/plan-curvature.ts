import type { LinearCollectiveModel } from "@skein/cost-model";
import { planFactorBuckets } from "@skein/cost-model/planners";
import { dataAxis, type Job } from "@skein/job/node";
import { millisecondsText } from "@skein/report";
import {
  bucketsInOrder,
  factorElements,
  gradientWorkers,
  type KfacForm,
  planKfacForms,
  type PlannedLayer,
  type PredictedForm,
  sideName,
  type StageTimes,
} from "@skein/second-order";
import { type CurvaturePlan, factorBucketBytes, type PlannedCurvature } from "@skein/step/node";
import { InvariantError } from "@skein/tensor-core";
import { agreement } from "./agree.ts";
import { type CurvatureTimes, measureCurvature, productsOf } from "./measure-curvature.ts";
import type { ProfileInput } from "./profile-steps.ts";

/** Converts times to a list of numbers, so that ranks can agree on the times. */
const numbersOf = (
  { factors, inverses, secondsPerProduct, allReduce, reduce, broadcast }: CurvatureTimes,
  paths: readonly string[],
): number[] => [
  factors.length,
  ...factors.flatMap(({ path, side, workSeconds }) => [paths.indexOf(path), side === "input" ? 0 : 1, workSeconds]),
  secondsPerProduct,
  ...[allReduce, reduce, broadcast].flatMap(({ startupSeconds, secondsPerByte }) => [startupSeconds, secondsPerByte]),
  ...inverses.flatMap(({ size, seconds }) => [size, seconds]),
];

const timesFrom = (numbers: readonly number[], paths: readonly string[]): CurvatureTimes => {
  const numFactors = numbers[0]!;
  const [afterFactors, afterModels] = [1 + 3 * numFactors, 1 + 3 * numFactors + 7];
  const model = (at: number): LinearCollectiveModel => ({
    startupSeconds: numbers[at]!,
    secondsPerByte: numbers[at + 1]!,
  });
  return {
    factors: Array.from({ length: numFactors }, (_, i) => {
      const [path, side, workSeconds] = numbers.slice(1 + 3 * i, 4 + 3 * i);
      return { path: paths[path!]!, side: side === 0 ? "input" : "gradient", workSeconds: workSeconds! };
    }),
    secondsPerProduct: numbers[afterFactors]!,
    allReduce: model(afterFactors + 1),
    reduce: model(afterFactors + 3),
    broadcast: model(afterFactors + 5),
    inverses: Array.from({ length: (numbers.length - afterModels) / 2 }, (_, i) => ({
      size: numbers[afterModels + 2 * i]!,
      seconds: numbers[afterModels + 2 * i + 1]!,
    })),
  };
};

/**
 * Returns a function that estimates the time to invert a factor of a given size. Between measured sizes, it
 * interpolates linearly in log-log scale, and outside it extrapolates the nearest segment. With one measured size, the
 * time is proportional to the cube of the size.
 */
const interpolated =
  (inverses: CurvatureTimes["inverses"]) =>
  (size: number): number => {
    const [only] = inverses;
    if (only === undefined) throw new InvariantError("no inverse was timed");
    if (inverses.length === 1) return only.seconds * (size / only.size) ** 3;
    const above = Math.min(
      inverses.length - 1,
      Math.max(
        1,
        inverses.findIndex((one) => one.size >= size),
      ),
    );
    const [low, high] = [inverses[above - 1]!, inverses[above]!];
    const share = Math.log(size / low.size) / Math.log(high.size / low.size);
    return low.seconds * (high.seconds / low.seconds) ** share;
  };

const linear =
  ({ startupSeconds, secondsPerByte }: LinearCollectiveModel) =>
  (elements: number): number =>
    Math.max(0, startupSeconds + 4 * elements * secondsPerByte);

/**
 * Returns the K-FAC variants that a job allows: the variant named in the job or, for "auto", all equivalent variants.
 */
const formsOf = (job: Extract<Job["optimizer"], { kind: "kfac" }>, numRanks: number): readonly KfacForm[] => {
  const askedWorkers = gradientWorkers(job.gradientWorkers, numRanks);
  if (job.form === "kaisa" || job.form === "pad" || job.form === "dp-hybrid")
    return [{ kind: job.form, fraction: askedWorkers / numRanks }];
  if (job.form !== "auto") return [{ kind: job.form }];
  const workers = new Set([1, askedWorkers, numRanks]);
  const fractions = [...workers].map((each) => each / numRanks);
  return [
    { kind: "d" },
    { kind: "mpd" },
    { kind: "spd" },
    ...fractions.filter((fraction) => fraction < 1).map((fraction) => ({ kind: "kaisa" as const, fraction })),
    ...fractions.map((fraction) => ({ kind: "pad" as const, fraction })),
  ];
};

/**
 * Chooses the K-FAC variant, the rank that inverts each factor, and the factors that are sent together.
 *
 * @returns the plan, and the predicted times of each variant, fastest first.
 */
export const decideCurvature = (
  { optimizer, ranks }: Pick<Job, "optimizer" | "ranks">,
  { layers, blockSize }: Pick<PlannedCurvature, "layers" | "blockSize">,
  measured: CurvatureTimes,
): { readonly plan: CurvaturePlan; readonly forms: readonly PredictedForm[] } => {
  if (optimizer.kind !== "kfac") throw new InvariantError(`${optimizer.kind} has no forms`);
  const work = new Map(
    measured.factors.map(({ path, side, workSeconds }) => [sideName(path, side), workSeconds] as const),
  );
  const layerOf = new Map<string, PlannedLayer>(layers.map((layer) => [layer.path, layer]));
  const computed = measured.factors.map(({ path, side, workSeconds }) => ({
    name: sideName(path, side),
    elements: factorElements(layerOf.get(path)!, side, blockSize),
    workSeconds,
  }));
  const bucketBytes = factorBucketBytes(optimizer.factorBuckets);
  const buckets =
    bucketBytes === undefined
      ? planFactorBuckets(computed, measured.allReduce).buckets
      : bucketsInOrder(computed, bucketBytes);
  const times: StageTimes = {
    factorSeconds: ({ path }, side) => work.get(sideName(path, side)) ?? 0,
    inverseSeconds: interpolated(measured.inverses),
    preconditionSeconds: (layer) => measured.secondsPerProduct * productsOf(layer),
    allReduceSeconds: linear(measured.allReduce),
    reduceSeconds: linear(measured.reduce),
    broadcastSeconds: linear(measured.broadcast),
  };
  const { factorEvery, inverseEvery } = optimizer;
  const forms = planKfacForms({
    layers,
    blockSize,
    numRanks: ranks,
    times,
    buckets,
    factorEvery,
    inverseEvery,
    forms: formsOf(optimizer, ranks),
  });
  const [{ form, placement, factors }] = forms;
  return { plan: { form, placement, factors, buckets }, forms };
};

const nameOf = (form: KfacForm): string =>
  "fraction" in form ? `${form.kind} with ${form.fraction} of the ranks as gradient workers` : form.kind;

/** Formats the decision and its reasons as one line. */
const remarkOn = (
  { form, placement, buckets }: CurvaturePlan,
  forms: readonly PredictedForm[],
  { inverses }: CurvatureTimes,
): string => {
  const rows = Object.values(placement.layers).flatMap(({ input, gradient }) => [input, gradient]);
  const sent = placement.workers === 1 ? 0 : rows.filter((row) => row !== "everywhere").length;
  const { size, seconds } = inverses.at(-1)!;
  const others = forms
    .slice(1)
    .map((each) => `${nameOf(each.form)} ${millisecondsText(each.meanStepSeconds)}`)
    .join(", ");
  const predicted = millisecondsText(forms[0]!.meanStepSeconds);
  return `kfac in the form ${nameOf(form)}: ${rows.length} factors are sent in ${buckets.length} buckets, ${sent} inverses are sent; inverting a factor of ${size} rows takes ${millisecondsText(seconds)}; second-order work is expected to add ${predicted} to a step on average${others === "" ? "" : `, compared with ${others}`}`;
};

/** Measures the cost of K-FAC in a job, and chooses the K-FAC variant. All ranks use the measurements of rank 0. */
export const planCurvature = async (
  input: ProfileInput,
): Promise<{ readonly plan: CurvaturePlan; readonly remark: string }> => {
  const { job, parts, backend, communicators } = input;
  const { curvature } = parts;
  const planned = curvature?.planned;
  if (curvature === undefined || planned === undefined) throw new InvariantError("there is no curvature to plan");
  const paths = planned.layers.map(({ path }) => path);
  const agree = agreement(backend, communicators, dataAxis);
  try {
    const own = await measureCurvature(input, curvature, planned);
    const times = timesFrom(await agree(numbersOf(own, paths)), paths);
    const { plan, forms } = decideCurvature(job, planned, times);
    return { plan, remark: remarkOn(plan, forms, times) };
  } finally {
    agree.release();
  }
};
