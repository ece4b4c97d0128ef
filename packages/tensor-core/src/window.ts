import { describe } from "./describe.ts";
import { ArgumentError, ShapeError } from "./errors.ts";

/** Rows and columns: `[height, width]`. */
export type Pair = readonly [number, number];

/** Elements added around an image: `[[top, bottom], [left, right]]`. */
export type Padding = readonly [Pair, Pair];

/**
 * Padding as users write it: "same" keeps the size (divided by the stride), "valid" adds nothing, a number pads all
 * sides, and `[rows, columns]` pads per direction, each with one number for both sides or a pair.
 */
export type PaddingOption = "same" | "valid" | number | readonly [rows: number | Pair, columns: number | Pair];

/** Resolved geometry of a sliding window; parameters of convolution and pooling operators. */
export type Sliding = {
  readonly stride: Pair;
  readonly padding: Padding;
  readonly dilation: Pair;
};

/** Accept one number for both directions; check that each is a whole number of at least `least`. */
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
 * Resolve a padding option to the number of elements per side. `"same"` gives ⌈size / stride⌉ positions; if the total
 * padding is odd, the larger half is at the bottom and right (the rule of TensorFlow and XLA).
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
 * Number of positions of a window along each direction: ⌊(size + padding − reach) / stride⌋ + 1. Throws if the window
 * does not fit even once.
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
