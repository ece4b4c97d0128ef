/** Rows and columns, of a number that stands for both. */
export const sidesOf = (size: number | readonly [number, number]): readonly [number, number] =>
  typeof size === "number" ? [size, size] : size;
