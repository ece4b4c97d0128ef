import { ArgumentError } from "@skein/tensor-core";
import { gradientWorkers, placeGreedily } from "../placement/greedy.ts";
import {
  type InversePlacement,
  placeByBlocks,
  placeEverywhere,
  placeInTurn,
  placeWhole,
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
 * A form of K-FAC.
 *
 * - `d`: all ranks invert all factors.
 * - `mpd`: layers in turn, and inverses to all ranks.
 * - `spd`: some factors are inverted by one rank and sent, the others by all: see `placeForStage`.
 * - `kaisa`: a share `fraction` of the ranks preconditions each layer, and sends the result to the others.
 * - `pad`: as `kaisa`, but a mean factor is known only to the rank that inverts it.
 * - `dp`: layers in turn, with factors of the samples of their rank alone: it computes something else than the others.
 * - `dp-hybrid`: as `dp`, with a share `fraction` of the ranks for each layer, which share out blocks of its factors.
 */
export type KfacForm =
  | { readonly kind: "d" | "mpd" | "spd" | "dp" }
  | { readonly kind: "kaisa" | "pad" | "dp-hybrid"; readonly fraction: number };

/**
 * Place the work of a form. Without times `spd` places layers in turn, and the others take an inverse for n³.
 *
 * @throws ArgumentError for a fraction that makes no whole number of gradient workers that divides the ranks.
 */
export const placeForm = (
  form: KfacForm,
  { times, ...options }: Omit<StageOptions, "times"> & Partial<Pick<StageOptions, "times">>,
): FormPlacement => {
  const { layers, numRanks } = options;
  const paths = layers.map(({ path }) => path);
  const inTurn = (): InversePlacement => placeInTurn(paths, numRanks);
  switch (form.kind) {
    case "d":
      return { placement: placeEverywhere(paths, numRanks), factors: "mean" };
    case "mpd":
      return { placement: inTurn(), factors: "mean" };
    case "spd":
      return { placement: times === undefined ? inTurn() : placeForStage({ ...options, times }), factors: "mean" };
    case "dp":
      return { placement: placeWhole(paths, numRanks), factors: "own" };
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

/** A form, where it puts what, and what that is predicted to take. */
export interface PredictedForm extends FormPlacement {
  readonly form: KfacForm;
  /** Of a step with a refresh. */
  readonly stages: FormStages;
  /** What second-order work adds to a step in the mean. */
  readonly meanStepSeconds: number;
}

/** From the simplest to the least simple. */
const kinds: readonly KfacForm["kind"][] = ["d", "mpd", "spd", "kaisa", "pad", "dp", "dp-hybrid"];

/** All forms that compute the same, for so many ranks; `dp` and `dp-hybrid` are none of them. */
export const equivalentForms = (numRanks: number): readonly KfacForm[] => {
  const fractions = Array.from({ length: numRanks }, (_, i) => numRanks - i)
    .filter((workers) => numRanks % workers === 0)
    .map((workers) => workers / numRanks);
  return [
    ...(["d", "mpd", "spd"] as const).map((kind) => ({ kind })),
    ...(["kaisa", "pad"] as const).flatMap((kind) => fractions.map((fraction) => ({ kind, fraction }))),
  ];
};

export interface ChooseFormOptions extends StageOptions, RefreshIntervals {
  /** Default: `equivalentForms`. Others are chosen only where they are given, since they compute something else. */
  readonly forms?: readonly KfacForm[];
}

/**
 * Predict the stages of each form, and sort by what they add to a step in the mean; of equal ones the simpler comes
 * first. The first is the one to run; the others say why.
 *
 * Cost: O(forms · layers · ranks), and of `spd` as `placeForStage`.
 *
 * @throws ArgumentError without forms, and as `formStages`, `placeForm` and `meanStepSeconds`.
 * @example const [best] = chooseForm({ layers, numRanks: 4, times, inverseEvery: 10 });
 */
export const chooseForm = (options: ChooseFormOptions): readonly [PredictedForm, ...PredictedForm[]] => {
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
  if (best === undefined) throw new ArgumentError("chooseForm: no forms were given; give one at least");
  return [best, ...others];
};
