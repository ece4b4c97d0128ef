import { ArgumentError } from "@skein/tensor-core";

/** Measured step time in seconds for a number of ranks. */
export interface MeasuredStep {
  readonly ranks: number;
  readonly stepSeconds: number;
}

/**
 * Extrapolates step seconds to more ranks without a model: each doubling of the ranks multiplies the seconds by the
 * same factor as the last measured doubling. A prediction by a model is useful only if its error is smaller than the
 * error of this extrapolation.
 *
 * The factor is computed from the two largest measured rank counts below `ranks`. The factor is 1 if there is only one
 * measurement.
 *
 * @param measured Measured steps. Several measurements with the same number of ranks are averaged.
 * @throws ArgumentError if no measurement has fewer ranks, or if a value is not positive and finite.
 * @example
 * ```ts
 * const measured = [{ ranks: 4, stepSeconds: 1 }, { ranks: 8, stepSeconds: 1.25 }];
 * console.log(repeatLastDoubling(measured, 16)); // 1.5625
 * ```
 */
export const repeatLastDoubling = (measured: readonly MeasuredStep[], ranks: number): number => {
  const wrong = measured.find(
    ({ ranks: own, stepSeconds }) =>
      !(own >= 1 && Number.isFinite(own) && stepSeconds > 0 && Number.isFinite(stepSeconds)),
  );
  if (wrong !== undefined)
    throw new ArgumentError(
      `a step of ${wrong.stepSeconds} s on ${wrong.ranks} ranks is not a measurement; seconds must be above 0 and ranks 1 or more`,
    );
  const byRanks = [...Map.groupBy(measured, ({ ranks: own }) => own)]
    .filter(([own]) => own < ranks)
    .toSorted(([a], [b]) => b - a)
    .map(([own, same]) => ({
      ranks: own,
      stepSeconds: same.reduce((sum, { stepSeconds }) => sum + stepSeconds, 0) / same.length,
    }));
  const [last, before] = byRanks;
  if (last === undefined)
    throw new ArgumentError(
      `a step on ${ranks} ranks cannot be extrapolated from ${measured.length === 0 ? "no measurement" : `${measured.map((one) => one.ranks).join(", ")} ranks`}; measure fewer ranks than ${ranks}`,
    );
  if (before === undefined) return last.stepSeconds;
  const exponent = Math.log(last.stepSeconds / before.stepSeconds) / Math.log(last.ranks / before.ranks);
  return last.stepSeconds * (ranks / last.ranks) ** exponent;
};
