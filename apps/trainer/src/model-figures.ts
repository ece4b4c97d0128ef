import type { Model } from "@skein/models";
import { concat, elementCount, inPhase, reshape, type Tensor, type TensorSpec } from "@skein/tensor-core";

/**
 * What a model tells of a step, f32 [n]; nothing where it tells nothing. Traced.
 *
 * @param state of the model, after the step.
 */
export const modelFigures = ({ figures }: Model, state: unknown): Tensor | readonly [] => {
  const values = Object.values(figures?.(state) ?? {});
  if (values.length === 0) return [];
  return inPhase("update", () => concat(values.map((value) => reshape(value, [elementCount(value.shape)]))));
};

/** Names of these numbers: those of a vector are counted. @param figures specs of what the model tells. */
export const figureNames = (figures: Readonly<Record<string, TensorSpec>>): string[] =>
  Object.entries(figures).flatMap(([name, { shape }]) =>
    shape.length === 0 ? [name] : Array.from({ length: elementCount(shape) }, (_, i) => `${name}.${i}`),
  );
