import { logPosition } from "@skein/report";

/** A logarithmic axis: converts values to pixels, and lists values with grid lines. */
export interface LogAxis {
  /** Returns the pixel position of a value. */
  at(value: number): number;
  /** Values with a label and a grid line. */
  readonly ticks: readonly number[];
  /** Values between labelled ticks, with only a faint grid line. */
  readonly minorTicks: readonly number[];
}

export interface LogAxisOptions {
  /** Smallest value of the axis. `to` is the largest value. */
  readonly from: number;
  readonly to: number;
  /** Pixel positions of `from` and `to`. The second position is smaller on an axis that points up. */
  readonly pixels: readonly [number, number];
  /** Base of the ticks, which are powers of the base. */
  readonly base: number;
  /** Multiples of each tick that become minor ticks. Default: no minor ticks. */
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
