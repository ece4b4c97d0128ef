import { concat, elementCount, inPhase, reshape, type Tensor, type TensorSpec } from "@skein/tensor-core";
import type { AnyModel } from "../task/task.ts";

/** By name, so that numbers and names stand in one order whoever built the record. */
const inOrder = <T>(figures: Readonly<Record<string, T>>): [string, T][] =>
  Object.entries(figures).sort(([a], [b]) => (a < b ? -1 : 1));

/**
 * What a model tells of a step, f32 [n]; nothing where it tells nothing. Traced.
 *
 * @param state of the model, after the step.
 */
export const modelFigures = ({ figures }: AnyModel, state: unknown): Tensor | readonly [] => {
  const values = inOrder(figures?.(state) ?? {}).map(([, value]) => value);
  if (values.length === 0) return [];
  return inPhase("update", () => concat(values.map((value) => reshape(value, [elementCount(value.shape)]))));
};

/** Names of these numbers: those of a vector are counted. @param figures specs of what the model tells. */
export const figureNames = (figures: Readonly<Record<string, TensorSpec>>): string[] =>
  inOrder(figures).flatMap(([name, { shape }]) =>
    shape.length === 0 ? [name] : Array.from({ length: elementCount(shape) }, (_, i) => `${name}.${i}`),
  );
