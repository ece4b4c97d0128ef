import type { KernelChoices, DeviceFacts, MatmulRequest } from "../kernel.ts";
import { staticChoice } from "../kernels/matmul/choose.ts";
import { keepsSumOrder } from "../kernels/matmul/sum-order.ts";
import { matmulVariant } from "../kernels/matmul/variants.ts";
import { nearestProduct } from "./nearest-product.ts";

/**
 * Times of the matmul variants for one product, seconds. Contains each variant that ran and returned a correct result.
 */
export interface MatmulMeasurement {
  readonly request: MatmulRequest;
  readonly seconds: { readonly [variant: string]: number };
}

/**
 * Quality of a selection method. The regret of a choice is `t_chosen / t_best − 1`: 0 if the fastest variant was
 * chosen, otherwise positive.
 */
export interface SelectionQuality {
  /** Fraction of measured products for which the fastest variant was chosen, 0 to 1. */
  readonly accuracy: number;
  /** Mean regret over the measured products. */
  readonly regret: number;
}

/** A product, and the names of its fastest variants, fastest first. */
export interface RankedProduct {
  readonly request: MatmulRequest;
  readonly fastest: readonly string[];
}

/** Measured choices for one adapter, as plain data that can be stored as JSON. */
export interface MatmulModel {
  readonly version: 2;
  readonly adapter: string;
  /**
   * Name of the variant to use if `products` is empty. The name `rule` means the selection rule for devices without
   * measurements.
   */
  readonly fallback: string;
  /**
   * Measured products. For a new product, the fastest variant of the most similar measured product is chosen. Empty if
   * this method was no better than the fallback on held-out shapes.
   */
  readonly products: readonly RankedProduct[];
  readonly samples: number;
  /** Quality of nearest-product selection on held-out shapes. Absent if fewer than two shapes were measured. */
  readonly heldOut?: SelectionQuality;
  readonly fallbackQuality: SelectionQuality;
}

/** Number of stored variants per product. If a variant cannot run for a product, the next variant is used. */
const maxRanked = 3;

const ranked = ({ request, seconds }: MatmulMeasurement): RankedProduct => ({
  request,
  fastest: Object.keys(seconds)
    .sort((p, q) => seconds[p]! - seconds[q]!)
    .slice(0, maxRanked),
});

/**
 * Computes accuracy and mean regret of the variants that `choose` returns for the measured products. A variant that was
 * not timed for a product counts as the slowest variant of the product.
 */
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

/**
 * Selection rule for devices without measurements: returns the name of a variant. The rule itself is a candidate for
 * the fallback of a model.
 */
type Rule = (request: MatmulRequest) => string;

/**
 * Computes the quality of nearest-product selection, leave-one-shape-out: each product is predicted only from products
 * of other sizes, of any layout or dtype.
 */
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
 * Trains a model that chooses, for each product, the fastest variant of the nearest measured product.
 *
 * - The fallback is the best fixed choice: the rule, or a variant that ran for all measured products.
 * - Products are kept only if their regret with each shape held out is smaller than the fallback's. If times do not
 *   depend on sizes, no products are kept.
 * - On the measured products, the model's choice is then the best measured variant.
 *
 * Gradient-boosted trees over the same sizes (Shi et al., MTNN) had 1.3 and 3.9 times the regret of the nearest product
 * in two measurements of the same products (docs/experiments.md).
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
 * Returns the names of a model's variants for a product, in order of preference, before the device's limits are
 * checked. Empty if the selection rule decides.
 */
export const rankedChoices = (model: MatmulModel, request: MatmulRequest): readonly string[] =>
  nearestProduct(model.products, request)?.fastest ?? (model.fallback === "rule" ? [] : [model.fallback]);

/**
 * Converts a model to the choices for `createWebGpuBackend`.
 *
 * @param facts Properties of the device that the model was measured on. A variant is skipped if the device cannot run
 * the variant for a product, or if the variant's order of additions differs from the order used for other row counts of
 * that product.
 */
export const choicesFrom = (model: MatmulModel, facts: DeviceFacts): KernelChoices => ({
  matmulVariant: (request) => {
    const product = { ...request, resultDtype: request.dtype };
    const supported = rankedChoices(model, request).find((name) => {
      const variant = matmulVariant(name);
      return variant?.supports(product, facts) && keepsSumOrder(variant, product, facts);
    });
    return supported ?? staticChoice(product, facts).name;
  },
});
