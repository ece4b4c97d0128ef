import { concat, elementCount, inPhase, reshape, type Tensor, type TensorSpec } from "@skein/tensor-core";
import type { AnyModel } from "../task/task.ts";

/** Sorts entries by name, so that values and names have the same order for any order of insertion. */
const sortedByName = <T>(figures: Readonly<Record<string, T>>): [string, T][] =>
  Object.entries(figures).sort(([a], [b]) => (a < b ? -1 : 1));

/**
 * Returns the metrics that a model computes in a step, f32 [n]. Empty if the model has no metrics. Traced.
 *
 * @param state State of the model after the step.
 */
export const modelFigures = ({ figures }: AnyModel, state: unknown): Tensor | readonly [] => {
  const values = sortedByName(figures?.(state) ?? {}).map(([, value]) => value);
  if (values.length === 0) return [];
  return inPhase("update", () => concat(values.map((value) => reshape(value, [elementCount(value.shape)]))));
};

/**
 * Returns the names of the values of `modelFigures`. Elements of a vector are numbered.
 *
 * @param figures Specs of the model's metrics.
 */
export const figureNames = (figures: Readonly<Record<string, TensorSpec>>): string[] =>
  sortedByName(figures).flatMap(([name, { shape }]) =>
    shape.length === 0 ? [name] : Array.from({ length: elementCount(shape) }, (_, i) => `${name}.${i}`),
  );
