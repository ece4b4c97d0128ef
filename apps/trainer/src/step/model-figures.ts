import { concat, elementCount, inPhase, reshape, type Tensor, type TensorSpec } from "@skein/tensor-core";
import type { AnyModel } from "../task/task.ts";

/** Entries sorted by name, so that numbers and names have the same order regardless of how the record was built. */
const sortedByName = <T>(figures: Readonly<Record<string, T>>): [string, T][] =>
  Object.entries(figures).sort(([a], [b]) => (a < b ? -1 : 1));

/**
 * Figures that a model computes in a step, f32 [n]. Empty: the model has no figures. Traced.
 *
 * @param state of the model, after the step.
 */
export const modelFigures = ({ figures }: AnyModel, state: unknown): Tensor | readonly [] => {
  const values = sortedByName(figures?.(state) ?? {}).map(([, value]) => value);
  if (values.length === 0) return [];
  return inPhase("update", () => concat(values.map((value) => reshape(value, [elementCount(value.shape)]))));
};

/** Names of these numbers; elements of a vector are numbered. @param figures specs of the model's figures. */
export const figureNames = (figures: Readonly<Record<string, TensorSpec>>): string[] =>
  sortedByName(figures).flatMap(([name, { shape }]) =>
    shape.length === 0 ? [name] : Array.from({ length: elementCount(shape) }, (_, i) => `${name}.${i}`),
  );
