import type { LinkSample } from "@skein/collectives";
import { ArgumentError } from "@skein/tensor-core";
import type { Contention } from "../hardware/hardware.ts";
import type { LinearCollectiveModel } from "../collective-model.ts";
import { fitLeastSquares } from "./fit-least-squares.ts";

/** Measured time of one of k collectives that have equal sizes, share a link and start at the same time. */
export interface ContendedSample extends LinkSample {
  /** k: number of concurrent collectives, including the timed collective. */
  readonly numFlows: number;
}

export interface FittedContention extends Contention {
  /**
   * Least-squares estimate of η / b without a lower bound of 0. Negative if concurrent flows together reach more
   * throughput than a single flow; in this case `penaltyPerFlow` is 0.
   */
  readonly unbounded: number;
  readonly standardError: number;
  /** Standard deviation of the relative errors of the fitted model. */
  readonly residual: number;
}

/**
 * Predicts the seconds per flow if k flows of M bytes share a link: a + k · b · M + (k − 1) · η · M.
 *
 * @example
 * ```ts
 * const link = { startupSeconds: 0, secondsPerByte: 1e-9 };
 * console.log(contendedSeconds(link, { penaltyPerFlow: 0.1 }, 2, 1e9)); // 2.1
 * ```
 * Source: the contention model of arXiv 2002.10105 (Ada-SRSF).
 */
export const contendedSeconds = (
  { startupSeconds, secondsPerByte }: LinearCollectiveModel,
  { penaltyPerFlow }: Contention,
  numFlows: number,
  bytes: number,
): number => startupSeconds + (numFlows + (numFlows - 1) * penaltyPerFlow) * secondsPerByte * bytes;

/**
 * Fits η / b, the penalty per additional flow on a link relative to the time per byte of a single flow. The fit uses
 * least squares of relative errors.
 *
 * Give either the mean times of the flows or the times of the slowest flows, not both: on the published link the
 * penalty is about 0 for means and about half of b for the slowest flows.
 *
 * @param model Model of a single flow, with b above 0.
 * @param samples Times of two or more concurrent flows; samples of a single flow contain no information about η and are
 * ignored.
 * @throws ArgumentError if the model or a sample is invalid, or if no sample has several flows.
 * @example
 * ```ts
 * const link = { startupSeconds: 0, secondsPerByte: 1e-9 };
 * const samples = [2, 3].map((numFlows) => ({
 *   numFlows,
 *   bytes: 1e9,
 *   seconds: contendedSeconds(link, { penaltyPerFlow: 0.1 }, numFlows, 1e9),
 * }));
 * console.log(fitContention(link, samples).penaltyPerFlow.toFixed(3)); // 0.100
 * ```
 */
export const fitContention = (model: LinearCollectiveModel, samples: readonly ContendedSample[]): FittedContention => {
  const wrong = samples.find(
    ({ numFlows, bytes, seconds }) =>
      !(
        Number.isInteger(numFlows) &&
        numFlows >= 1 &&
        bytes > 0 &&
        seconds > 0 &&
        Number.isFinite(bytes) &&
        Number.isFinite(seconds)
      ),
  );
  if (wrong !== undefined)
    throw new ArgumentError(
      `fitContention: ${wrong.numFlows} flows of ${wrong.bytes} bytes in ${wrong.seconds} s are not a valid sample; flows must be a whole number from 1, bytes and seconds must be above 0`,
    );
  if (
    !(
      model.secondsPerByte > 0 &&
      model.startupSeconds >= 0 &&
      Number.isFinite(model.secondsPerByte + model.startupSeconds)
    )
  )
    throw new ArgumentError(
      `fitContention: the model of one flow is ${model.startupSeconds} s + ${model.secondsPerByte} s/byte; the first must be 0 or more, the second above 0, both finite; fit the model to samples of one flow`,
    );
  const shared = samples.filter(({ numFlows }) => numFlows > 1);
  if (shared.length === 0)
    throw new ArgumentError(
      `fitContention: 0 of ${samples.length} samples have several flows, and a fit needs at least one; measure two or more flows at once`,
    );
  const { parameters, standardErrors, residual } = fitLeastSquares(
    ([penaltyPerFlow]) =>
      shared.map(
        ({ numFlows, bytes, seconds }) =>
          contendedSeconds(model, { penaltyPerFlow: penaltyPerFlow! }, numFlows, bytes) / seconds - 1,
      ),
    [0.1],
  );
  return {
    penaltyPerFlow: Math.max(0, parameters[0]!),
    unbounded: parameters[0]!,
    standardError: standardErrors[0]!,
    residual,
  };
};
