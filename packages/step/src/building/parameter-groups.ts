import { ConfigError } from "@skein/cli/node";
import { type Job, namedParameters, selectParameters } from "@skein/job/node";
import { type DecayMask, type GradientTransformation, mapTree, multiply, type Tensor } from "@skein/tensor-core";
import type { Freezing } from "./frozen.ts";

/** Job settings for single parameters, by path. Parameters without settings are not listed. */
export interface ParameterGroups {
  /** Factor of the learning rate, by parameter path. */
  readonly rates: ReadonlyMap<string, number>;
  /** Factor of the weight decay, by parameter path. */
  readonly decays: ReadonlyMap<string, number>;
}

/**
 * Resolves the job's patterns for learning rates and weight decays to parameters.
 * @throws ConfigError if a pattern matches no parameter, or only frozen parameters.
 */
export const parameterGroups = (
  { rates, weightDecays }: Pick<Job, "rates" | "weightDecays">,
  params: unknown,
  { frozen }: Freezing,
): ParameterGroups => {
  const parameters = namedParameters(params);
  const factorsByPath = (key: "rates" | "weightDecays", factors: Readonly<Record<string, number>> = {}) =>
    new Map(
      Object.entries(factors).flatMap(([pattern, factor]) => {
        const matched = selectParameters(pattern, parameters, key);
        if (matched.every(({ path }) => frozen.has(path)))
          throw new ConfigError([
            `${key}: "${pattern}" matches ${matched.length} ${matched.length === 1 ? "parameter, which is" : "parameters, all of them"} frozen, so ${factor} has no effect; remove it, or unfreeze ${matched.length === 1 ? "the parameter" : "some of them"}`,
          ]);
        return matched.map(({ path }) => [path, factor] as const);
      }),
    );
  return { rates: factorsByPath("rates", rates), decays: factorsByPath("weightDecays", weightDecays) };
};

/**
 * Returns the decay mask of a job: the job's factors for the parameters in `decays`, and `others` for all other
 * parameters.
 * @param others mask of all other parameters.
 */
export const decayMaskOf =
  ({ decays }: Pick<ParameterGroups, "decays">, others: DecayMask): DecayMask =>
  (path, param) =>
    decays.get(path) ?? others(path, param);

const scaledBy = (move: Tensor, factor: number): Tensor => (factor === 1 ? move : multiply(move, factor));

/**
 * Wraps an optimizer so that the updates of the parameters in `rates` are multiplied by their factors. This is
 * equivalent to another learning rate, because every optimizer multiplies by the learning rate last. The wrapped
 * optimizer has the same state as `optimizer`.
 *
 * Cost: one multiplication per entry of the parameters in `rates`.
 */
export const scaleUpdates = <State>(
  optimizer: GradientTransformation<State>,
  { rates }: Pick<ParameterGroups, "rates">,
): GradientTransformation<State> =>
  rates.size === 0
    ? optimizer
    : {
        ...optimizer,
        update: (updates, state, context) => {
          const [moves, next] = optimizer.update(updates, state, context);
          const scaled = mapTree(moves, (move: Tensor, path) => scaledBy(move, rates.get(path) ?? 1));
          return [scaled as typeof moves, next];
        },
      };
