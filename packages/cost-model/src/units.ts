/** Seconds of so many microseconds. */
export const microseconds = (count: number): number => count * 1e-6;

/** Seconds of so many milliseconds. */
export const milliseconds = (count: number): number => count * 1e-3;

/** Bytes of so many kibibytes, 2¹⁰. */
export const kibibytes = (count: number): number => count * 2 ** 10;

/** Bytes of so many mebibytes, 2²⁰. */
export const mebibytes = (count: number): number => count * 2 ** 20;

/** Seconds per byte of a link of so many gigabits (10⁹) in a second, one way. */
export const gigabitsPerSecond = (count: number): number => 8e-9 / count;
