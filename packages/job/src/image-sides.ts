/** Returns rows and columns of a size; a single number is used for both. */
export const sidesOf = (size: number | readonly [number, number]): readonly [number, number] =>
  typeof size === "number" ? [size, size] : size;
