/** Convert microseconds to seconds. */
export const microseconds = (count: number): number => count * 1e-6;

/** Convert milliseconds to seconds. */
export const milliseconds = (count: number): number => count * 1e-3;

/** Convert kibibytes, 2¹⁰ bytes, to bytes. */
export const kibibytes = (count: number): number => count * 2 ** 10;

/** Convert mebibytes, 2²⁰ bytes, to bytes. */
export const mebibytes = (count: number): number => count * 2 ** 20;

/** Returns the seconds per byte of a link with `count` gigabits (10⁹ bits) per second in one direction. */
export const gigabitsPerSecond = (count: number): number => 8e-9 / count;
