import { ArgumentError, type Schedule } from "@skein/tensor-core";
import type { Layer } from "./statistics/layer.ts";

/** Throws ArgumentError if a constant damping is not positive. */
export const checkDamping = (fn: string, damping: Schedule): void => {
  if (typeof damping === "function" || (damping > 0 && damping < Infinity)) return;
  throw new ArgumentError(
    `${fn}: damping is ${String(damping)}, but damping makes the curvature invertible; use a positive number such as 0.03, or a schedule`,
  );
};

/** Throws ArgumentError if a decay is not in [0, 1). */
export const checkDecay = (fn: string, decay: number): void => {
  if (decay >= 0 && decay < 1) return;
  throw new ArgumentError(
    `${fn}: decay is ${String(decay)}, but it is the weight of the previous value in running means; use a number from 0 to below 1, for example 0.95`,
  );
};

/** Throws ArgumentError if the list of layers to precondition is empty. */
export const requireLayers = (fn: string, layers: readonly Layer[]): void => {
  if (Array.isArray(layers) && layers.length > 0) return;
  throw new ArgumentError(
    `${fn}: there is no layer to precondition; pass the layers from findLayers(), or use an optimizer without layers, such as momentum()`,
  );
};
