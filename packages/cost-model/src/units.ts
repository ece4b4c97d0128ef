/**
 * Converts microseconds to seconds.
 *
 * @example
 * ```ts
 * console.log(microseconds(1)); // 0.000001
 * ```
 */
export const microseconds = (count: number): number => count * 1e-6;

/**
 * Converts milliseconds to seconds.
 *
 * @example
 * ```ts
 * console.log(milliseconds(2)); // 0.002
 * ```
 */
export const milliseconds = (count: number): number => count * 1e-3;

/**
 * Converts kibibytes, 2¹⁰ bytes, to bytes.
 *
 * @example
 * ```ts
 * console.log(kibibytes(64)); // 65536
 * ```
 */
export const kibibytes = (count: number): number => count * 2 ** 10;

/**
 * Converts mebibytes, 2²⁰ bytes, to bytes.
 *
 * @example
 * ```ts
 * console.log(mebibytes(4)); // 4194304
 * ```
 */
export const mebibytes = (count: number): number => count * 2 ** 20;

/**
 * Returns the seconds per byte of a link with `count` gigabits (10⁹ bits) per second in one direction.
 *
 * @example
 * ```ts
 * console.log(gigabitsPerSecond(10)); // 8e-10
 * ```
 */
export const gigabitsPerSecond = (count: number): number => 8e-9 / count;
