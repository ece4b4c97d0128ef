import { ArgumentError } from "@skein/tensor-core";

/** What one whole collective takes: a + b · M seconds for M bytes. */
export interface LinearCollectiveModel {
  /** a. */
  readonly startupSeconds: number;
  /** b. */
  readonly secondsPerByte: number;
}

/** A line that holds from a size on, up to where the next piece begins. */
export interface CollectivePiece extends LinearCollectiveModel {
  readonly fromBytes: number;
}

/**
 * Lines that follow one another, where the library below changes its algorithm with the size. The first begins at 0
 * bytes.
 */
export interface PiecewiseCollectiveModel {
  readonly pieces: readonly CollectivePiece[];
}

/** What a collective takes by its bytes; plain data. */
export type CollectiveModel = LinearCollectiveModel | PiecewiseCollectiveModel;

const isLine = ({ startupSeconds, secondsPerByte }: LinearCollectiveModel): boolean =>
  startupSeconds >= 0 && secondsPerByte >= 0 && Number.isFinite(startupSeconds) && Number.isFinite(secondsPerByte);

/**
 * Look up the line of `model` that holds for a message of `bytes`.
 *
 * @throws ArgumentError for a line with a negative or infinite figure, or a model with no piece for M.
 */
export const lineAt = (model: CollectiveModel, bytes: number): LinearCollectiveModel => {
  const line = "pieces" in model ? model.pieces.findLast(({ fromBytes }) => bytes >= fromBytes) : model;
  if (line === undefined)
    throw new ArgumentError(
      `a collective model has no piece for ${bytes} bytes; its first piece must begin at 0 bytes`,
    );
  if (!isLine(line))
    throw new ArgumentError(
      `a collective model says ${line.startupSeconds} s + ${line.secondsPerByte} s/byte; both must be finite and not negative; measure it anew`,
    );
  return line;
};

/**
 * Price a collective: a + b · M of the line that holds for M.
 *
 * @param bytes M, 0 or more: of the vector for an all-reduce and for its two halves.
 * @throws as `lineAt`.
 */
export const collectiveSeconds = (model: CollectiveModel, bytes: number): number => {
  const { startupSeconds, secondsPerByte } = lineAt(model, bytes);
  return startupSeconds + secondsPerByte * bytes;
};

/**
 * Model either half of an all-reduce: a/2 + (b/2) · M. Reduce-scatter and all-gather of a ring take (P − 1)α + (P −
 * 1)/P · M β each, half of what its all-reduce takes.
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
