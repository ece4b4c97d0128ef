/** Places numbers on a logarithmic axis, and says where its lines go. */
export interface LogAxis {
  /** Pixel of a value. */
  at(value: number): number;
  /** Values that are labelled. */
  readonly ticks: readonly number[];
  /** Values between them that only have a faint line. */
  readonly minorTicks: readonly number[];
}

export interface LogAxisOptions {
  /** The least and the largest value that are shown. */
  readonly from: number;
  readonly to: number;
  /** Pixels at which they stand; the second may be the smaller one, as on an axis that points up. */
  readonly pixels: readonly [number, number];
  /** Ticks stand at its powers. */
  readonly base: number;
  /** Multiples of each tick that have a minor one. Default: none. */
  readonly minor?: readonly number[];
}

/**
 * Make an axis on which equal ratios are equally far apart: pixel = p₀ + (p₁ − p₀) · log(value / from) / log(to /
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
  return { at: (value) => first + ((last - first) * Math.log(value / from)) / Math.log(to / from), ticks, minorTicks };
};
