import { ArgumentError, type Schedule } from "@skein/tensor-core";
import type { Layer } from "./statistics/layer.ts";

/** Checks that a constant damping is positive. @throws ArgumentError for other values. */
export const checkDamping = (fn: string, damping: Schedule): void => {
  if (typeof damping === "function" || (damping > 0 && damping < Infinity)) return;
  throw new ArgumentError(
    `${fn}: damping is ${String(damping)}, but damping makes the curvature invertible; use a positive number such as 0.03, or a schedule`,
  );
};

/** Checks that a decay is in [0, 1). @throws ArgumentError for other values. */
export const checkDecay = (fn: string, decay: number): void => {
  if (decay >= 0 && decay < 1) return;
  throw new ArgumentError(
    `${fn}: decay is ${String(decay)}, but it is the weight of the previous value in running means; use a number from 0 to below 1, for example 0.95`,
  );
};

/** Checks that there are layers to precondition. @throws ArgumentError for an empty list. */
export const requireLayers = (fn: string, layers: readonly Layer[]): void => {
  if (Array.isArray(layers) && layers.length > 0) return;
  throw new ArgumentError(
    `${fn}: there is no layer to precondition; pass the layers from findLayers(), or use an optimizer without layers, such as momentum()`,
  );
};
