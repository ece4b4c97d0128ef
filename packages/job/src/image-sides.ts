/** Returns an image size as [rows, columns]. A single number is used for rows and columns. */
export const sidesOf = (size: number | readonly [number, number]): readonly [number, number] =>
  typeof size === "number" ? [size, size] : size;
