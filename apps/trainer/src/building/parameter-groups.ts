import { type DecayMask, type GradientTransformation, mapTree, multiply, type Tensor } from "@skein/tensor-core";
import { ConfigError } from "../errors.ts";
import type { Freezing } from "./frozen.ts";
import type { Job } from "../job/job.ts";
import { namedParameters, parametersOf } from "../job/parameter-patterns.ts";

/** What a job says of single parameters, by path; those that it says nothing of are left out. */
export interface ParameterGroups {
  /** Factors of the learning rate. */
  readonly rates: ReadonlyMap<string, number>;
  /** Factors of the weight decay. */
  readonly decays: ReadonlyMap<string, number>;
}

/** @throws ConfigError for a pattern that means no parameter, or none that is trained. */
export const parameterGroups = (
  { rates, weightDecays }: Pick<Job, "rates" | "weightDecays">,
  params: unknown,
  { frozen }: Freezing,
): ParameterGroups => {
  const parameters = namedParameters(params);
  const lastMeant = (key: "rates" | "weightDecays", factors: Readonly<Record<string, number>> = {}) =>
    new Map(
      Object.entries(factors).flatMap(([pattern, factor]) => {
        const meant = parametersOf(pattern, parameters, key);
        if (meant.every(({ path }) => frozen.has(path)))
          throw new ConfigError([
            `${key}: "${pattern}" means ${meant.length} ${meant.length === 1 ? "parameter, which is" : "parameters, all of them"} frozen, so ${factor} has no effect; leave it out, or take ${meant.length === 1 ? "it" : "some"} out of freeze`,
          ]);
        return meant.map(({ path }) => [path, factor] as const);
      }),
    );
  return { rates: lastMeant("rates", rates), decays: lastMeant("weightDecays", weightDecays) };
};

/** Which parameters decay, where a job says it of some. @param others of all others. */
export const decayMaskOf =
  ({ decays }: Pick<ParameterGroups, "decays">, others: DecayMask): DecayMask =>
  (path, param) =>
    decays.get(path) ?? others(path, param);

const scaledBy = (move: Tensor, factor: number): Tensor => (factor === 1 ? move : multiply(move, factor));

/**
 * An optimizer whose updates of some parameters are multiplied by a factor: by it they are at another learning rate,
 * since every optimizer multiplies by that last. Its state is that of the optimizer.
 *
 * Cost: a product per number of those parameters.
 */
export const atOwnRates = <State>(
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
