import { type WorldStep, worldSeconds } from "@skein/report";

/** The step whose time is the middle one: what it shows is neither luck nor a hiccup. */
export const medianStep = (steps: readonly WorldStep[]): WorldStep =>
  steps.toSorted((a, b) => worldSeconds(a) - worldSeconds(b))[Math.floor((steps.length - 1) / 2)]!;
