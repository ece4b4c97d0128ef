import type { Choices, DeviceFacts, MatmulRequest } from "../kernel.ts";
import { staticChoice } from "../kernels/matmul/choose.ts";
import { keepsSumOrder } from "../kernels/matmul/sum-order.ts";
import { matmulVariant } from "../kernels/matmul/variants.ts";
import { nearestProduct } from "./nearest-product.ts";

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

/** A product and its variants from the fastest on, a few of them. */
export interface RankedProduct {
  readonly request: MatmulRequest;
  readonly fastest: readonly string[];
}

/** What was learned on one adapter. Plain data: goes through JSON. */
export interface MatmulModel {
  readonly version: 2;
  readonly adapter: string;
  /** What is chosen where `products` are none: a variant, or `rule`, the rule of devices that were not measured. */
  readonly fallback: string;
  /**
   * A product is run as the one that is most like it was run fastest. None where that did not beat the fallback on
   * shapes not seen.
   */
  readonly products: readonly RankedProduct[];
  readonly samples: number;
  /** Of the choice by the nearest product. Absent where fewer than two shapes were measured. */
  readonly heldOut?: SelectionQuality;
  readonly fallbackQuality: SelectionQuality;
}

/** A variant may not run for a product though it did for the nearest: then the next one is asked. */
const mostRanked = 3;

const ranked = ({ request, seconds }: MatmulMeasurement): RankedProduct => ({
  request,
  fastest: Object.keys(seconds)
    .sort((p, q) => seconds[p]! - seconds[q]!)
    .slice(0, mostRanked),
});

/** Quality of `choose` on samples. What was not measured for a sample counts as the slowest that was. */
export const selectionQuality = (
  samples: readonly MatmulMeasurement[],
  choose: (sample: MatmulMeasurement) => string,
): SelectionQuality => {
  let [hits, regret] = [0, 0];
  for (const sample of samples) {
    const times = Object.values(sample.seconds);
    const best = Math.min(...times);
    const chosen = sample.seconds[choose(sample)] ?? Math.max(...times);
    hits += Number(chosen === best);
    regret += chosen / best - 1;
  }
  return { accuracy: hits / samples.length, regret: regret / samples.length };
};

const shapeOf = ({ request: { batch, rows, columns, inner } }: MatmulMeasurement): string =>
  `${batch}x${rows}x${columns}x${inner}`;

/** What an unmeasured device would choose, by name; one of the candidates for the fallback. */
type Rule = (request: MatmulRequest) => string;

/** Quality of the nearest product where none of the same sizes was seen, in whichever layout or dtype. */
export const heldOutQuality = (samples: readonly MatmulMeasurement[], rule: Rule): SelectionQuality | undefined => {
  const shapes = samples.map(shapeOf);
  if (new Set(shapes).size < 2) return undefined;
  const products = samples.map(ranked);
  const choices = new Map(
    samples.map((sample, i) => {
      const nearest = nearestProduct(
        products.filter((_, j) => shapes[j] !== shapes[i]),
        sample.request,
      )!;
      return [sample, nearest.fastest.find((name) => sample.seconds[name] !== undefined) ?? rule(sample.request)];
    }),
  );
  return selectionQuality(samples, (sample) => choices.get(sample)!);
};

/**
 * Learn which variant is the fastest for which product: that of the nearest product measured.
 *
 * - The fallback is the best of all fixed choices: the rule, and every variant that ran on all samples.
 * - Products are kept only if their regret with each shape held out is smaller than the fallback's: times that sizes
 *   do not explain teach nothing.
 * - On the measured products themselves the result is then the best that was measured.
 *
 * Gradient-boosted trees over the same sizes (Shi et al., MTNN) had 1.3 and 3.9 times the regret of the nearest
 * product in two takes of the same products (docs/experiments.md).
 */
export const trainMatmulModel = (
  adapter: string,
  samples: readonly MatmulMeasurement[],
  { rule }: { readonly rule: Rule },
): MatmulModel => {
  const base = { version: 2 as const, adapter, samples: samples.length };
  if (samples.length === 0)
    return { ...base, fallback: "rule", products: [], fallbackQuality: { accuracy: 0, regret: 0 } };
  const everywhere = Object.keys(samples[0]!.seconds).filter((name) =>
    samples.every(({ seconds }) => seconds[name] !== undefined),
  );
  const fixed = ["rule", ...everywhere.sort()].map((name) => ({
    name,
    quality: selectionQuality(samples, ({ request }) => (name === "rule" ? rule(request) : name)),
  }));
  const { name: fallback, quality: fallbackQuality } = fixed.reduce((best, next) =>
    next.quality.regret < best.quality.regret ? next : best,
  );
  const heldOut = heldOutQuality(samples, rule);
  const products = heldOut !== undefined && heldOut.regret < fallbackQuality.regret ? samples.map(ranked) : [];
  return { ...base, fallback, products, ...(heldOut && { heldOut }), fallbackQuality };
};

/**
 * What a model chooses, before a device's limits are asked: names from the first choice on; empty where the rule
 * decides.
 */
export const rankedChoices = (model: MatmulModel, request: MatmulRequest): readonly string[] =>
  nearestProduct(model.products, request)?.fastest ?? (model.fallback === "rule" ? [] : [model.fallback]);

/**
 * Choices for `createWebGpuBackend`.
 *
 * @param facts of the device that the model was measured on; a variant is passed over if the device cannot run it for a
 * product, or if it adds in another order than the other row counts of that product.
 */
export const choicesFrom = (model: MatmulModel, facts: DeviceFacts): Choices => ({
  matmulVariant: (request) => {
    const product = { ...request, resultDtype: request.dtype };
    const supported = rankedChoices(model, request).find((name) => {
      const variant = matmulVariant(name);
      return variant?.supports(product, facts) && keepsSumOrder(variant, product, facts);
    });
    return supported ?? staticChoice(product, facts).name;
  },
});
