import { ArgumentError } from "@skein/tensor-core";
import { gradientWorkers, placeGreedily } from "../placement/greedy.ts";
import {
  type InversePlacement,
  placeByBlocks,
  placeEverywhere,
  placeRoundRobin,
  placeWholeLayers,
} from "../placement/inverse-placement.ts";
import {
  type FormPlacement,
  formStages,
  type FormStages,
  meanStepSeconds,
  type RefreshIntervals,
  type StageOptions,
} from "./form-stages.ts";
import { placeForStage } from "./place-for-stage.ts";

/**
 * A variant of distributed K-FAC.
 *
 * - `d`: all ranks invert all factors.
 * - `mpd`: factors are inverted round-robin, and inverses are sent to all ranks.
 * - `spd`: some factors are inverted by one rank and sent, other factors are inverted by all ranks: see
 *   `placeForStage`.
 * - `kaisa`: a share `fraction` of the ranks preconditions each layer, and sends the result to all other ranks.
 * - `pad`: like `kaisa`, but only the rank that inverts a factor has its mean.
 * - `dp`: layers are placed round-robin. Factors contain only samples of their rank, so results differ from other
 *   variants.
 * - `dp-hybrid`: like `dp`, but a share `fraction` of the ranks handles each layer, and these ranks share the blocks of
 *   its factors.
 */
export type KfacForm =
  | { readonly kind: "d" | "mpd" | "spd" | "dp" }
  | { readonly kind: "kaisa" | "pad" | "dp-hybrid"; readonly fraction: number };

/**
 * Places the work of a K-FAC variant on ranks. Without times, `spd` places layers round-robin, and the other variants
 * assume that an inverse costs n³.
 *
 * @throws ArgumentError if the fraction gives a number of gradient workers that is not an integer or does not divide
 *   the number of ranks.
 * @example
 * ```ts
 * const layers = [{ path: "a", numInputs: 4, numOutputs: 2, kind: "linear" }] as const;
 * console.log(placeForm({ kind: "mpd" }, { layers, numRanks: 2 }).factors); // mean
 * ```
 */
export const placeForm = (
  form: KfacForm,
  { times, ...options }: Omit<StageOptions, "times"> & Partial<Pick<StageOptions, "times">>,
): FormPlacement => {
  const { layers, numRanks } = options;
  const paths = layers.map(({ path }) => path);
  const inTurn = (): InversePlacement => placeRoundRobin(paths, numRanks);
  switch (form.kind) {
    case "d":
      return { placement: placeEverywhere(paths, numRanks), factors: "mean" };
    case "mpd":
      return { placement: inTurn(), factors: "mean" };
    case "spd":
      return { placement: times === undefined ? inTurn() : placeForStage({ ...options, times }), factors: "mean" };
    case "dp":
      return { placement: placeWholeLayers(paths, numRanks), factors: "own" };
    case "dp-hybrid":
      return {
        placement: placeByBlocks(paths, numRanks, gradientWorkers(form.fraction, numRanks)),
        factors: "own",
      };
    case "kaisa":
    case "pad": {
      const workers = gradientWorkers(form.fraction, numRanks);
      const cost = times?.inverseSeconds;
      return {
        placement: placeGreedily(layers, { numRanks, workers, ...(cost !== undefined && { cost }) }),
        factors: form.kind === "kaisa" ? "mean" : "mean-at-owner",
      };
    }
  }
};

/** A K-FAC variant with its placement and predicted times. */
export interface PredictedForm extends FormPlacement {
  readonly form: KfacForm;
  /** Predicted stage times of a step with a refresh. */
  readonly stages: FormStages;
  /** Seconds that second-order work adds to a step, averaged over steps with and without a refresh. */
  readonly meanStepSeconds: number;
}

/** K-FAC variants in order of increasing complexity. */
const kinds: readonly KfacForm["kind"][] = ["d", "mpd", "spd", "kaisa", "pad", "dp", "dp-hybrid"];

/**
 * Returns all variants with equal results for `numRanks` ranks; excludes `dp` and `dp-hybrid`.
 *
 * @example
 * ```ts
 * console.log(new Set(equivalentForms(4).map(({ kind }) => kind)).size); // 5
 * ```
 */
export const equivalentForms = (numRanks: number): readonly KfacForm[] => {
  const fractions = Array.from({ length: numRanks }, (_, i) => numRanks - i)
    .filter((workers) => numRanks % workers === 0)
    .map((workers) => workers / numRanks);
  return [
    ...(["d", "mpd", "spd"] as const).map((kind) => ({ kind })),
    ...(["kaisa", "pad"] as const).flatMap((kind) => fractions.map((fraction) => ({ kind, fraction }))),
  ];
};

export interface PlanKfacFormsOptions extends StageOptions, RefreshIntervals {
  /** Variants to compare. Default: `equivalentForms`. Other variants must be listed, because their results differ. */
  readonly forms?: readonly KfacForm[];
}

/**
 * Predicts the stages of each variant, and sorts variants by the mean time that they add to a step. Among equally fast
 * variants, the simpler variant comes first. Run the first variant; all further variants are for comparison.
 *
 * Cost: O(forms · layers · ranks), plus the cost of `placeForStage` for `spd`.
 *
 * @throws ArgumentError if the list of variants is empty, and under the conditions of `formStages`, `placeForm` and
 * `meanStepSeconds`.
 * @example
 * ```ts
 * const layers = ["a", "b"].map((path) => ({ path, numInputs: 64, numOutputs: 32, kind: "linear" }) as const);
 * const times = {
 *   factorSeconds: () => 1e-4,
 *   inverseSeconds: (size: number) => 1e-9 * size ** 3,
 *   preconditionSeconds: () => 1e-5,
 *   allReduceSeconds: (elements: number) => 1e-5 + 1e-9 * elements,
 *   reduceSeconds: (elements: number) => 1e-5 + 1e-9 * elements,
 *   broadcastSeconds: (elements: number) => 1e-5 + 1e-9 * elements,
 * };
 * const [best] = planKfacForms({ layers, numRanks: 4, times, inverseEvery: 10 });
 * console.log(best.meanStepSeconds > 0); // true
 * ```
 */
export const planKfacForms = (options: PlanKfacFormsOptions): readonly [PredictedForm, ...PredictedForm[]] => {
  const { numRanks, forms = equivalentForms(numRanks) } = options;
  const predicted = forms
    .toSorted((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind))
    .map((form): PredictedForm => {
      const placed = placeForm(form, options);
      const stages = formStages(placed, options);
      return { ...placed, form, stages, meanStepSeconds: meanStepSeconds(stages, options) };
    })
    .toSorted((a, b) => a.meanStepSeconds - b.meanStepSeconds);
  const [best, ...others] = predicted;
  if (best === undefined) throw new ArgumentError("planKfacForms: no forms were given; give at least one");
  return [best, ...others];
};
