import { ArgumentError } from "@skein/tensor-core";

/** Time model of a collective: a + b · M seconds for M bytes. */
export interface LinearCollectiveModel {
  /** Start-up time a, in seconds. */
  readonly startupSeconds: number;
  /** Time per byte b, in seconds. */
  readonly secondsPerByte: number;
}

/**
 * Piece of a piecewise linear model. The piece is valid for messages of `fromBytes` bytes or more, and of fewer bytes
 * than `fromBytes` of the next piece.
 */
export interface CollectivePiece extends LinearCollectiveModel {
  readonly fromBytes: number;
}

/**
 * Piecewise linear model, for libraries that change their algorithm with the message size. The first piece starts at 0
 * bytes.
 */
export interface PiecewiseCollectiveModel {
  readonly pieces: readonly CollectivePiece[];
}

/** Time model of a collective as a function of its bytes, as plain data. */
export type CollectiveModel = LinearCollectiveModel | PiecewiseCollectiveModel;

const isLine = ({ startupSeconds, secondsPerByte }: LinearCollectiveModel): boolean =>
  startupSeconds >= 0 && secondsPerByte >= 0 && Number.isFinite(startupSeconds) && Number.isFinite(secondsPerByte);

/**
 * Finds the linear model that is valid for a message of `bytes` bytes.
 *
 * @throws ArgumentError if a coefficient is negative or infinite, or if the model has no piece for this size.
 */
export const lineAt = (model: CollectiveModel, bytes: number): LinearCollectiveModel => {
  const line = "pieces" in model ? model.pieces.findLast(({ fromBytes }) => bytes >= fromBytes) : model;
  if (line === undefined)
    throw new ArgumentError(
      `a collective model has no piece for ${bytes} bytes; its first piece must begin at 0 bytes`,
    );
  if (!isLine(line))
    throw new ArgumentError(
      `a collective model has ${line.startupSeconds} s + ${line.secondsPerByte} s/byte, but both must be finite and not negative; measure the model again`,
    );
  return line;
};

/**
 * Predicts the seconds of a collective: a + b · M, with the piece that is valid for M.
 *
 * @param bytes M, 0 or more. For all-reduce, reduce-scatter and all-gather: size of the full vector.
 * @throws ArgumentError under the same conditions as `lineAt`.
 * @example
 * ```ts
 * const model = { startupSeconds: microseconds(50), secondsPerByte: 1e-9 };
 * console.log(collectiveSeconds(model, 1_000_000)); // 0.00105
 * ```
 */
export const collectiveSeconds = (model: CollectiveModel, bytes: number): number => {
  const { startupSeconds, secondsPerByte } = lineAt(model, bytes);
  return startupSeconds + secondsPerByte * bytes;
};

/**
 * Returns the time model of one half of an all-reduce (reduce-scatter or all-gather): a/2 + (b/2) · M. Reduce-scatter
 * and all-gather over a ring each take (P − 1)α + (P − 1)/P · M β, half the time of a ring all-reduce.
 *
 * Source: Zhang et al. 2023, arXiv 2302.12445 (DeAR).
 */
export const halfOf = (model: CollectiveModel): CollectiveModel => {
  const half = ({ startupSeconds, secondsPerByte }: LinearCollectiveModel): LinearCollectiveModel => ({
    startupSeconds: startupSeconds / 2,
    secondsPerByte: secondsPerByte / 2,
  });
  return "pieces" in model
    ? { pieces: model.pieces.map((piece) => ({ ...half(piece), fromBytes: piece.fromBytes })) }
    : half(model);
};
