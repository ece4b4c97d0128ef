/**
 * Arithmetic of simulated times. With fractions, a simulation is exact, so that its result can be compared with closed
 * forms to the last digit. With plain numbers, a simulation is fast.
 */
export interface TimeArithmetic<T> {
  readonly zero: T;
  readonly add: (a: T, b: T) => T;
  readonly subtract: (a: T, b: T) => T;
  /** Multiplies a time by a count or a slowdown. */
  readonly times: (a: T, factor: number) => T;
  readonly over: (a: T, divisor: number) => T;
  /** Compares two times; negative if a is before b. */
  readonly compare: (a: T, b: T) => number;
}

/** Times in seconds as plain numbers. */
export const plainSeconds: TimeArithmetic<number> = {
  zero: 0,
  add: (a, b) => a + b,
  subtract: (a, b) => a - b,
  times: (a, factor) => a * factor,
  over: (a, divisor) => a / divisor,
  compare: (a, b) => a - b,
};
