import { ShapeError } from "../errors.ts";
import { emit, emitOne } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions } from "../options.ts";
import { elementCount, formatSpec, resolveDim, sameShape } from "../shape.ts";
import { cast, type DimOption, divide, where } from "./elementwise.ts";
import { reshape, swapDims } from "./movement.ts";
import { mean, sum } from "./reduce.ts";

/** Apply an operator that works on rows (the last dimension) along `dim`. */
const alongDim = (op: "softmax" | "log-softmax", x: Tensor, options: DimOption): Tensor => {
  const { dim = -1 } = checkOptions(op === "softmax" ? "softmax(x)" : "logSoftmax(x)", options, { dim: true });
  const along = resolveDim(dim, x.rank, op);
  return swapDims(emitOne(op, [swapDims(x, along, -1)]), along, -1);
};

/**
 * `exp(x − max x) / Σ exp(x − max x)` along `dim` (the last one by default), f32. Entries of −∞ get probability 0; a row of nothing else is NaN. Along the last
 * dimension no data moves; along another one it is transposed there and back.
 */
export const softmax = (x: Tensor, options: DimOption = {}): Tensor => alongDim("softmax", x, options);

/** `x − max x − log Σ exp(x − max x)` along `dim` (the last one by default), f32: the logarithm of `softmax` without its underflow. */
export const logSoftmax = (x: Tensor, options: DimOption = {}): Tensor => alongDim("log-softmax", x, options);

export interface CrossEntropyOptions {
  /** bool, shaped like the labels: rows that count. Default: all. */
  readonly mask?: Tensor;
}

/**
 * Cross-entropy of each row, `logsumexp(logits) − logits[label]` in nats.
 *
 * @param logits f32 [..., C].
 * @param labels i32 [...]. A label outside 0 ≤ label < C makes the loss and the gradient of its row NaN, so that the step's non-finite check finds it.
 * @param options.mask Rows that are left out have loss 0 and gradient 0, whatever they hold: infinities, NaN, a label such as −100. The choice is made
 * before the loss is computed, since 0 · NaN is NaN. Costs one more pass over the logits, unless it fuses with what computes them.
 * @returns f32 [...].
 * @example crossEntropyPerRow(logits, labels, { mask: notEqual(labels, -100) })
 */
export const crossEntropyPerRow = (logits: Tensor, labels: Tensor, { mask }: CrossEntropyOptions = {}): Tensor => {
  if (!sameShape(logits.shape.slice(0, -1), labels.shape) || logits.rank === 0) {
    throw new ShapeError(
      "cross-entropy",
      `logits ${formatSpec(logits)} need one label per row, but labels are ${formatSpec(labels)}; their shape must be that of the logits without its last dimension`,
    );
  }
  if (mask !== undefined) {
    if (!sameShape(mask.shape, labels.shape) || mask.dtype !== "bool")
      throw new ShapeError(
        "cross-entropy",
        `mask ${formatSpec(mask)} and labels ${formatSpec(labels)} differ; it takes a bool for each label`,
      );
    const counted = crossEntropyPerRow(where(reshape(mask, [...mask.shape, 1]), logits, 0), where(mask, labels, 0));
    return where(mask, counted, 0);
  }
  const rows = elementCount(labels.shape);
  const [losses] = emit("cross-entropy", [reshape(logits, [rows, logits.shape.at(-1)!]), reshape(labels, [rows])]);
  return reshape(losses!, labels.shape);
};

/**
 * Mean cross-entropy over the rows that count, in nats: the loss of a classifier or a language model. Arguments as in `crossEntropyPerRow`. NaN
 * where no row counts.
 *
 * @returns f32 scalar.
 * @example const loss = crossEntropy(logits, batch.labels);
 */
export const crossEntropy = (logits: Tensor, labels: Tensor, { mask }: CrossEntropyOptions = {}): Tensor =>
  mask === undefined
    ? mean(crossEntropyPerRow(logits, labels))
    : divide(sum(crossEntropyPerRow(logits, labels, { mask })), sum(cast(mask, "f32")));
