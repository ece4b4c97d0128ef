import { describe } from "./describe.ts";
import { ArgumentError, ShapeError } from "./errors.ts";

/** Pair of numbers for the rows and the columns of an image: `[height, width]`. */
export type Pair = readonly [number, number];

/** Number of elements added on each side of an image: `[[top, bottom], [left, right]]`. */
export type Padding = readonly [Pair, Pair];

/**
 * Padding option of convolutions and pooling. "same": output size ⌈input size / stride⌉. "valid": no padding. A number:
 * padding of all four sides. `[rows, columns]`: padding per direction, each a number for both sides or a pair of
 * numbers.
 */
export type PaddingOption = "same" | "valid" | number | readonly [rows: number | Pair, columns: number | Pair];

/** Resolved geometry of a sliding window; parameters of convolution and pooling operators. */
export type Sliding = {
  readonly stride: Pair;
  readonly padding: Padding;
  readonly dilation: Pair;
};

/** Converts one number to a pair for both directions, and checks that both numbers are integers of at least `least`. */
export const resolvePair = (value: number | Pair, name: string, op: string, least = 1): Pair => {
  if (typeof value !== "number" && !(Array.isArray(value) && value.length === 2))
    throw new ArgumentError(
      `${op}: ${name} is ${describe(value)}, but it must be a whole number of at least ${least}, or a pair of such numbers; write ${name.includes("padding") ? "padding: 1" : `${name}: 2, or ${name}: [2, 2]`}`,
    );
  const [height, width] = typeof value === "number" ? [value, value] : value;
  if (!Number.isInteger(height) || !Number.isInteger(width) || height < least || width < least) {
    throw new ArgumentError(
      `${op}: ${name} is [${height}, ${width}], both must be whole numbers of at least ${least}; pass one number or [height, width]`,
    );
  }
  return [height, width];
};

/**
 * Resolves a padding option to the number of elements per side. `"same"` gives ⌈size / stride⌉ output positions. If the
 * total padding is odd, the larger half is at the bottom or right (as in TensorFlow and XLA).
 */
export const resolvePadding = (
  option: PaddingOption,
  size: Pair,
  window: Pair,
  stride: Pair,
  dilation: Pair,
  op: string,
): Padding => {
  if (option === "valid")
    return [
      [0, 0],
      [0, 0],
    ];
  if (option === "same") {
    const side = (dim: 0 | 1): Pair => {
      const reach = (window[dim] - 1) * dilation[dim] + 1;
      const total = Math.max((Math.ceil(size[dim] / stride[dim]) - 1) * stride[dim] + reach - size[dim], 0);
      return [Math.floor(total / 2), Math.ceil(total / 2)];
    };
    return [side(0), side(1)];
  }
  if (typeof option === "number") {
    const sides = resolvePair(option, "padding", op, 0);
    return [sides, sides];
  }
  if (!Array.isArray(option) || option.length !== 2)
    throw new ArgumentError(
      `${op}: padding is ${describe(option)}, but it must be "same", "valid", a number for all sides, or [rows, columns]; write padding: 1 for a border of 1`,
    );
  return [resolvePair(option[0], "padding of rows", op, 0), resolvePair(option[1], "padding of columns", op, 0)];
};

/**
 * Computes the number of window positions along each direction: ⌊(size + padding − reach) / stride⌋ + 1. Throws if the
 * window is larger than the padded image.
 */
export const slidingPositions = (
  size: Pair,
  window: Pair,
  { stride, padding, dilation }: Sliding,
  op: string,
): Pair => {
  const along = (dim: 0 | 1): number => {
    const padded = size[dim] + padding[dim][0] + padding[dim][1];
    const reach = (window[dim] - 1) * dilation[dim] + 1;
    if (reach > padded) {
      throw new ShapeError(
        op,
        `a window of ${window.join("×")} with dilation ${dilation.join("×")} reaches over ${reach} ${dim === 0 ? "rows" : "columns"}, the padded image has ${padded}; it must fit at least once: pad more or use a smaller window`,
      );
    }
    return Math.floor((padded - reach) / stride[dim]) + 1;
  };
  return [along(0), along(1)];
};
