import { ArgumentError } from "@skein/tensor-core";
import type { Choices, DeviceFacts, MatmulRequest } from "../kernel.ts";
import { staticChoice } from "../kernels/matmul/choose.ts";
import { matmulVariant } from "../kernels/matmul/variants.ts";
import { type BoostedTrees, type BoostingOptions, rankClasses, trainBoostedTrees } from "./gradient-boosted-trees.ts";

/** Seconds of each variant that ran and was right. */
export interface MatmulMeasurement {
  readonly request: MatmulRequest;
  readonly seconds: { readonly [variant: string]: number };
}

/** How good a way of choosing is: `regret = t_chosen / t_best − 1`, never negative; 0 when each choice was the best. */
export interface SelectionQuality {
  /** Share of samples where the best was chosen. */
  readonly accuracy: number;
  /** Mean regret. */
  readonly regret: number;
}

/** What was learned on one adapter. Plain data: goes through JSON. */
export interface MatmulModel {
  readonly version: 1;
  readonly adapter: string;
  /** Names of the classes of `trees`. */
  readonly variants: readonly string[];
  /** What is chosen where the trees are not: a variant, or `rule`, the rule of devices that were not measured. */
  readonly fallback: string;
  /** Absent where they did not beat the fallback on samples that they had not seen. */
  readonly trees?: BoostedTrees;
  /** Measured products for which the choice above is slower than the fallback, and what is chosen instead; by `requestKey`. */
  readonly corrections: { readonly [request: string]: string };
  readonly samples: number;
  readonly heldOut: SelectionQuality;
  readonly fallbackQuality: SelectionQuality;
}

export const requestKey = ({ batch, rows, columns, inner, transposeA, transposeB, dtype }: MatmulRequest): string =>
  `${batch}x${rows}x${columns}x${inner} ${transposeA ? "T" : "N"}${transposeB ? "T" : "N"} ${dtype}`;

/** Logarithms, since what matters are ratios; the last two say how much work and how much parallelism there is. */
export const featuresOf = ({ batch, rows, columns, inner, transposeA, transposeB, dtype }: MatmulRequest): readonly number[] => {
  const logs = [rows, columns, inner, batch].map((size) => Math.log2(Math.max(1, size)));
  const [m, n, k, b] = logs as [number, number, number, number];
  return [...logs, Number(transposeA), Number(transposeB), Number(dtype === "f16"), m + n + k + b, m + n + b];
};

const bestOf = (seconds: { readonly [variant: string]: number }, among: readonly string[] = Object.keys(seconds)): string =>
  among.filter((name) => seconds[name] !== undefined).reduce((best, name) => (seconds[name]! < seconds[best]! ? name : best));

const worstSeconds = (seconds: { readonly [variant: string]: number }): number => Math.max(...Object.values(seconds));

/** Quality of `choose` on samples. What was not measured for a sample counts as the slowest that was. */
export const selectionQuality = (
  samples: readonly MatmulMeasurement[],
  choose: (sample: MatmulMeasurement) => string,
): SelectionQuality => {
  let [hits, regret] = [0, 0];
  for (const sample of samples) {
    const best = sample.seconds[bestOf(sample.seconds)]!;
    const chosen = sample.seconds[choose(sample)] ?? worstSeconds(sample.seconds);
    hits += Number(chosen === best);
    regret += chosen / best - 1;
  }
  return { accuracy: hits / samples.length, regret: regret / samples.length };
};

/** The first class of the ranking that ran on this sample. */
const predicted = (trees: BoostedTrees, variants: readonly string[], { request, seconds }: MatmulMeasurement): string =>
  rankClasses(trees, featuresOf(request))
    .map((label) => variants[label]!)
    .find((name) => seconds[name] !== undefined) ?? bestOf(seconds);

const fit = (samples: readonly MatmulMeasurement[], variants: readonly string[], options: BoostingOptions | undefined): BoostedTrees =>
  trainBoostedTrees(
    samples.map(({ request }) => featuresOf(request)),
    samples.map(({ seconds }) => variants.indexOf(bestOf(seconds, variants))),
    variants.length,
    options,
  );

/** Every fifth sample, from each of five starts, is judged by trees that saw only the others. */
const folds = 5;

const heldOutChoices = (
  samples: readonly MatmulMeasurement[],
  variants: readonly string[],
  options: BoostingOptions | undefined,
): ReadonlyMap<MatmulMeasurement, string> => {
  const choices = new Map<MatmulMeasurement, string>();
  for (let fold = 0; fold < folds; fold++) {
    const seen = samples.filter((_, i) => i % folds !== fold);
    if (seen.length === 0) continue;
    const trees = fit(seen, variants, options);
    samples.forEach((sample, i) => {
      if (i % folds === fold) choices.set(sample, predicted(trees, variants, sample));
    });
  }
  return choices;
};

export interface TrainingOptions extends BoostingOptions {
  /** What an unmeasured device would choose, by name; one of the candidates for the fallback. */
  readonly rule: (request: MatmulRequest) => string;
}

/**
 * Learn which variant is the fastest for which product (Shi et al., MTNN: gradient-boosted trees over the logarithms of the sizes).
 *
 * - The fallback is the best of all fixed choices: the rule, and every variant that ran on all samples.
 * - The trees are kept only if their regret on held-out samples (5 folds) is smaller than the fallback's; accuracy on the samples they were
 *   fitted to says little (the paper's 96 % are 90 % on shapes not seen).
 * - On the measured products themselves the result is never slower than the fallback: exceptions are kept by name.
 */
export const trainMatmulModel = (adapter: string, samples: readonly MatmulMeasurement[], options: TrainingOptions): MatmulModel => {
  const { rule, ...boosting } = options;
  // A variant that is nowhere the best is no class.
  const variants = [...new Set(samples.map(({ seconds }) => bestOf(seconds)))].sort();
  const everywhere = Object.keys(samples[0]?.seconds ?? {}).filter((name) => samples.every(({ seconds }) => seconds[name] !== undefined));
  const candidates = ["rule", ...everywhere.sort()];
  const fixed =
    (name: string) =>
    (sample: MatmulMeasurement): string =>
      name === "rule" ? rule(sample.request) : name;
  if (samples.length === 0) {
    const nothing = { accuracy: 0, regret: 0 };
    return { version: 1, adapter, variants, fallback: "rule", corrections: {}, samples: 0, heldOut: nothing, fallbackQuality: nothing };
  }
  const qualities = candidates.map((name) => ({ name, quality: selectionQuality(samples, fixed(name)) }));
  const { name: fallback, quality: fallbackQuality } = qualities.reduce((best, next) =>
    next.quality.regret < best.quality.regret ? next : best,
  );
  const judged = heldOutChoices(samples, variants, boosting);
  const heldOut =
    judged.size === samples.length ? selectionQuality(samples, (sample) => judged.get(sample)!) : { accuracy: 0, regret: Infinity };
  const base = { version: 1 as const, adapter, variants, fallback, samples: samples.length, heldOut, fallbackQuality };
  if (!(heldOut.regret < fallbackQuality.regret))
    return { ...base, heldOut: { ...heldOut, regret: Math.min(heldOut.regret, Number.MAX_VALUE) }, corrections: {} };
  const trees = fit(samples, variants, boosting);
  const corrections: { [request: string]: string } = {};
  for (const sample of samples) {
    const chosen = sample.seconds[predicted(trees, variants, sample)]!;
    if (chosen > (sample.seconds[fixed(fallback)(sample)] ?? Infinity)) corrections[requestKey(sample.request)] = bestOf(sample.seconds);
  }
  return { ...base, trees, corrections };
};

/** What a model chooses, before a device's limits are asked: names from the first choice on; empty where the rule decides. */
export const rankedChoices = (model: MatmulModel, request: MatmulRequest): readonly string[] => {
  const corrected = model.corrections[requestKey(request)];
  if (corrected !== undefined) return [corrected];
  if (model.trees !== undefined) return rankClasses(model.trees, featuresOf(request)).map((label) => model.variants[label]!);
  return model.fallback === "rule" ? [] : [model.fallback];
};

/**
 * Choices for `createWebGpuBackend`.
 *
 * @param facts of the device that the model was measured on; a variant that it cannot run for some product is passed over.
 */
export const choicesFrom = (model: MatmulModel, facts: DeviceFacts): Choices => ({
  matmulVariant: (request) => {
    const product = { ...request, resultDtype: request.dtype };
    const ranked = rankedChoices(model, request).find((name) => matmulVariant(name)?.supports(product, facts));
    return ranked ?? staticChoice(product, facts).name;
  },
});

/** @throws ArgumentError unless `value` was once a model. */
export const parseMatmulModel = (value: unknown): MatmulModel => {
  const model = value as Partial<MatmulModel> | null;
  if (
    typeof model !== "object" ||
    model?.version !== 1 ||
    typeof model.adapter !== "string" ||
    !Array.isArray(model.variants) ||
    typeof model.fallback !== "string" ||
    typeof model.corrections !== "object"
  )
    throw new ArgumentError("this is no matmul model of version 1; delete it and measure the device again");
  return model as MatmulModel;
};
