import { operator, type Operator, type PassSetting, work } from "./operator.ts";

/** Element counts read and written, and flops, of an elementwise operator that passes over its operands once. */
export interface Sweep {
  readonly read: number;
  readonly written: number;
  readonly flops: number;
  /** Element counts read and written, and flops, of the backward pass. Default: no backward pass. */
  readonly backward?: { readonly read: number; readonly written: number; readonly flops: number };
  readonly saved?: number;
  readonly parameters?: number;
}

/** Builds a memory-bound operator, such as a normalization, an activation or an addition. */
export const sweep = (setting: PassSetting, name: string, kind: string, given: Sweep): Operator => {
  const { valueBytes, weightBytes, training, adapters } = setting;
  const { read, written, flops, backward, saved = 0, parameters = 0 } = given;
  return operator(name, kind, {
    [adapters === undefined ? "trainable" : "frozen"]: parameters,
    weightBytes: parameters * weightBytes,
    forward: work(flops, read * valueBytes + parameters * weightBytes, written * valueBytes),
    backward:
      training && backward !== undefined
        ? [work(backward.flops, backward.read * valueBytes, backward.written * valueBytes)]
        : [],
    savedBytes: training ? saved * valueBytes : 0,
    outputBytes: written * valueBytes,
  });
};

/** Builds a layer normalization or RMS normalization over the width; its input is saved for the backward pass. */
export const norm = (
  setting: PassSetting,
  name: string,
  kind: "layer" | "rms",
  rows: number,
  width: number,
): Operator => {
  const values = rows * width;
  const [flops, parameters] = kind === "rms" ? [4, width] : [7, 2 * width];
  return sweep(setting, name, `${kind}-norm`, {
    read: values,
    written: values,
    flops: flops * values,
    backward: { read: 2 * values, written: values, flops: 2 * flops * values },
    saved: values,
    parameters,
  });
};

/**
 * Builds the operator that adds a branch and its shortcut. The backward pass adds the gradients of branch and shortcut.
 */
export const residual = (setting: PassSetting, name: string, values: number): Operator =>
  sweep(setting, name, "add", {
    read: 2 * values,
    written: values,
    flops: values,
    backward: { read: 2 * values, written: values, flops: values },
  });
