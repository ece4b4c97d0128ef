import type { LinkSample } from "@skein/collectives";
import { ArgumentError } from "@skein/tensor-core";
import type { Contention } from "../hardware/hardware.ts";
import type { LinearCollectiveModel } from "../collective-model.ts";
import { fitLeastSquares } from "./fit-least-squares.ts";

/** What one of several equal collectives took that shared a link from their common begin. */
export interface ContendedSample extends LinkSample {
  /** k, the one that was timed among them. */
  readonly numFlows: number;
}

export interface FittedContention extends Contention {
  /**
   * η / b as the samples have it; below 0 where flows together got more through the link than one alone, which
   * `penaltyPerFlow` does not claim.
   */
  readonly unbounded: number;
  readonly standardError: number;
  /** Scatter of relative errors. */
  readonly residual: number;
}

/**
 * Price k flows at once on one link: a + k · b · M + (k − 1) · η · M of each.
 *
 * Source: the contention model of arXiv 2002.10105 (Ada-SRSF).
 */
export const contendedSeconds = (
  { startupSeconds, secondsPerByte }: LinearCollectiveModel,
  { penaltyPerFlow }: Contention,
  numFlows: number,
  bytes: number,
): number => startupSeconds + (numFlows + (numFlows - 1) * penaltyPerFlow) * secondsPerByte * bytes;

/**
 * Fit η / b, by how much flows that share a link slow one another beyond their share, by least squares of relative
 * errors.
 *
 * Count either means or the slowest of the flows: on the published link the penalty is nothing for the one and about
 * half of b for the other.
 *
 * @param model of one flow alone, with b above 0.
 * @param samples of two flows or more; those of one say nothing of η and are passed over.
 * @throws ArgumentError for samples and models that are none, or fewer than one sample of several flows.
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
      `fitContention: ${wrong.numFlows} flows of ${wrong.bytes} bytes in ${wrong.seconds} s were given; flows are counted from 1, bytes and seconds are above 0`,
    );
  if (
    !(
      model.secondsPerByte > 0 &&
      model.startupSeconds >= 0 &&
      Number.isFinite(model.secondsPerByte + model.startupSeconds)
    )
  )
    throw new ArgumentError(
      `fitContention: one flow takes ${model.startupSeconds} s + ${model.secondsPerByte} s/byte by its model; the first must not be negative, the second above 0, both finite; fit it to samples of one flow`,
    );
  const shared = samples.filter(({ numFlows }) => numFlows > 1);
  if (shared.length === 0)
    throw new ArgumentError("fitContention: no sample is of several flows; measure two or more at once");
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
