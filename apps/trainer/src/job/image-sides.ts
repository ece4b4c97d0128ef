/** Rows and columns of a size; a number stands for both. */
export const sidesOf = (size: number | readonly [number, number]): readonly [number, number] =>
  typeof size === "number" ? [size, size] : size;
