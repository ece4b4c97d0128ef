import type { ModelShape } from "./model-shape.ts";
import { type Operator, type OperatorWork, type Part, type PassSetting, totalWork, work } from "./operator.ts";
import { residualParts } from "./residual-parts.ts";
import { transformerParts } from "./transformer-parts.ts";

/**
 * Returns the parts, modules and operators of a model on one rank for one pass over a batch, in the order of the
 * forward pass.
 */
export const partsOf = (shape: ModelShape, setting: PassSetting): readonly Part[] =>
  shape.kind === "transformer" ? transformerParts(shape, setting) : residualParts(shape, setting);

/** Returns the operators of one repeat of a part. */
export const operatorsOf = ({ modules }: Part): readonly Operator[] => modules.flatMap(({ operators }) => operators);

/** Returns the sum of a metric over all operators of a model, including repeats. */
export const sumOver = (parts: readonly Part[], figure: (operator: Operator) => number): number =>
  parts.reduce(
    (sum, part) => sum + part.repeats * operatorsOf(part).reduce((inner, operator) => inner + figure(operator), 0),
    0,
  );

const scaled = (factor: number, { flops, bytesRead, bytesWritten }: OperatorWork): OperatorWork =>
  work(factor * flops, factor * bytesRead, factor * bytesWritten);

/** Returns the total work of one pass over a model. */
export const passWork = (parts: readonly Part[], pass: "forward" | "backward"): OperatorWork =>
  totalWork(
    parts.map((part) =>
      scaled(
        part.repeats,
        totalWork(operatorsOf(part).flatMap(({ forward, backward }) => (pass === "forward" ? [forward] : backward))),
      ),
    ),
  );

/**
 * Returns the number of parameters of a model, such as 124,439,808 for the smallest GPT-2.
 *
 * @example
 * ```ts
 * console.log(parameterCount(modelNamed("gpt-2"))); // 124439808
 * ```
 */
export const parameterCount = (shape: ModelShape): number => {
  const setting: PassSetting = {
    batch: 1,
    length: 1,
    context: 1,
    type: "f32",
    valueBytes: 4,
    weightBytes: 4,
    flashAttention: true,
    tensorParallel: 1,
    training: true,
  };
  return sumOver(partsOf(shape, setting), ({ trainable, frozen }) => trainable + frozen);
};
