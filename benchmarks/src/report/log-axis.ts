import { logPosition } from "@skein/report";

/** A logarithmic axis: pixels of values, and values with grid lines. */
export interface LogAxis {
  /** Pixel of a value. */
  at(value: number): number;
  /** Values with a label and a line. */
  readonly ticks: readonly number[];
  /** Values between labelled ones, with only a faint line. */
  readonly minorTicks: readonly number[];
}

export interface LogAxisOptions {
  /** Smallest and largest value of the axis. */
  readonly from: number;
  readonly to: number;
  /** Pixels of these two values; the second may be smaller, as on an axis that points up. */
  readonly pixels: readonly [number, number];
  /** Base of the ticks, which are powers of the base. */
  readonly base: number;
  /** Multiples of each tick that have a minor tick. Default: no minor ticks. */
  readonly minor?: readonly number[];
}

/**
 * Creates an axis on which equal ratios have equal distances: pixel = p₀ + (p₁ − p₀) · log(value / from) / log(to /
 * from).
 */
export const logAxis = ({ from, to, pixels: [first, last], base, minor = [] }: LogAxisOptions): LogAxis => {
  if (!(from > 0 && to > from))
    throw new Error(`a logarithmic axis cannot go from ${from} to ${to}; both are above 0, the second is larger`);
  const ticks: number[] = [];
  const minorTicks: number[] = [];
  for (let power = Math.floor(Math.log(from) / Math.log(base)); base ** power <= to; power++) {
    const tick = base ** power;
    const shown = (value: number): boolean => value >= from && value <= to;
    if (shown(tick)) ticks.push(tick);
    minorTicks.push(...minor.map((multiple) => multiple * tick).filter(shown));
  }
  return { at: (value) => first + (last - first) * logPosition(value, [from, to]), ticks, minorTicks };
};
