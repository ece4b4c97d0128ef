import { type WorldStep, worldSeconds } from "@skein/report";

/** Returns the step with the median duration, which is robust against outliers. */
export const medianStep = (steps: readonly WorldStep[]): WorldStep =>
  steps.toSorted((a, b) => worldSeconds(a) - worldSeconds(b))[Math.floor((steps.length - 1) / 2)]!;
