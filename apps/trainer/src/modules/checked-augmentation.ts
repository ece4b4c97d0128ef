import { ModuleError } from "@skein/cli/node";
import type { Augmentation, ColourJitter, ResizedCrop } from "@skein/data";
import type { TensorSpec } from "@skein/tensor-core";
import { excerpt, formatSpec } from "@skein/tensor-core/backend";

/**
 * Rule that an augmentation violates. `part` is the name of the invalid option, or empty if the value is not an
 * augmentation at all.
 */
export interface AugmentationFault {
  readonly part: "" | "cropPadding" | "jitter";
  readonly rule: string;
}

/**
 * Checks an augmentation for images of the given shape. Returns the violated rule; undefined if the augmentation is
 * valid.
 * @param inputs spec of the inputs of one sample.
 */
export const augmentationFault = (
  { cropPadding, jitter }: Augmentation,
  inputs: TensorSpec | undefined,
): AugmentationFault | undefined => {
  if (inputs?.dtype !== "u8" || inputs.shape.length !== 3) {
    const found = inputs === undefined ? "missing" : formatSpec(inputs);
    return {
      part: "",
      rule: `it changes images of bytes [height, width, channels], but the inputs are ${found}; remove it`,
    };
  }
  const [rows, columns, channels] = inputs.shape as readonly [number, number, number];
  const least = Math.min(rows, columns);
  if (cropPadding >= least)
    return {
      part: "cropPadding",
      rule: `images of ${rows}×${columns} cannot be shifted by ${cropPadding} pixels, because little of them would remain; use less than ${least}, such as ${Math.floor(least / 8)}`,
    };
  return jitter !== undefined && channels !== 1 && channels !== 3
    ? {
        part: "jitter",
        rule: `it changes colours of images with 1 or 3 channels, but these have ${channels}; remove it`,
      }
    : undefined;
};

const isBetween = (value: unknown, least: number, most: number): boolean =>
  typeof value === "number" && value >= least && value <= most;

const isRange = (value: unknown, least: number, most: number): boolean =>
  Array.isArray(value) &&
  value.length === 2 &&
  value.every((end) => isBetween(end, least, most)) &&
  value[0] <= value[1];

/** Whether a value is a random crop within the ranges that job files allow. */
const isResizedCrop = (value: unknown): value is ResizedCrop => {
  const { scale, ratio } = (value ?? {}) as Partial<ResizedCrop>;
  return isRange(scale, Number.MIN_VALUE, 1) && isRange(ratio, 0.01, 100);
};

const isJitter = (value: unknown): value is ColourJitter => {
  const { brightness, contrast, saturation } = (value ?? {}) as Partial<ColourJitter>;
  return [brightness, contrast, saturation].every((change) => isBetween(change, 0, 10));
};

/**
 * Checks a user-defined augmentation of images.
 *
 * @param inputs spec of the inputs of one sample. @param what name of the data in errors.
 * @throws ModuleError if the augmentation is invalid or does not match the images.
 */
export const requireAugmentation = (given: unknown, inputs: TensorSpec | undefined, what: string): Augmentation => {
  const refuse = (path: string, value: unknown, rule: string): never => {
    throw new ModuleError(`${what}: augmentation${path} is ${excerpt(value)}, but must be ${rule}`);
  };
  const { cropPadding, flip, resizedCrop, jitter } = (given ?? {}) as Partial<Augmentation>;
  if (!Number.isInteger(cropPadding) || cropPadding! < 0 || typeof flip !== "boolean")
    return refuse(
      "",
      given,
      "{ cropPadding, flip }: maximum shift of images in pixels, from 0, and whether images are mirrored; resizedCrop and jitter are optional",
    );
  if (resizedCrop !== undefined && !isResizedCrop(resizedCrop))
    return refuse(
      ".resizedCrop",
      resizedCrop,
      "{ scale, ratio }: minimum and maximum share of the area, such as [0.08, 1], and minimum and maximum width over height, such as [0.75, 1.33]",
    );
  if (resizedCrop !== undefined && cropPadding! > 0)
    return refuse(".cropPadding", cropPadding, "0 with resizedCrop, because both select the visible part");
  if (jitter !== undefined && !isJitter(jitter))
    return refuse(".jitter", jitter, "{ brightness, contrast, saturation }, each from 0 (no change) to 10");
  const augmentation: Augmentation = {
    cropPadding: cropPadding!,
    flip,
    ...(resizedCrop !== undefined && { resizedCrop }),
    ...(jitter !== undefined && { jitter }),
  };
  const fault = augmentationFault(augmentation, inputs);
  if (fault !== undefined)
    throw new ModuleError(`${what}: augmentation${fault.part === "" ? "" : `.${fault.part}`}: ${fault.rule}`);
  return augmentation;
};
