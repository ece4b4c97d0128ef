import type { Units } from "../quantities.ts";

/**
 * Returns about `count` ticks at round numbers in a range, including its ends. The distance of ticks is 1, 2 or 5 times
 * a power of ten. An empty range has no ticks.
 *
 * Self-contained: the page embeds the source of this function.
 */
export const linearTicks = (from: number, to: number, count: number): number[] => {
  const rough = (to - from) / count;
  if (!Number.isFinite(rough) || rough <= 0) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const ratio = rough / power;
  const step = power * (ratio > 5 ? 10 : ratio > 2 ? 5 : ratio > 1 ? 2 : 1);
  const first = Math.ceil(from / step - 1e-9);
  const last = Math.floor(to / step + 1e-9);
  // Rounded, so that three steps of 0.1 are exactly 0.3.
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => Number(((first + i) * step).toPrecision(12)));
};

/** Returns the position of a value in a range on a logarithmic scale, 0 to 1. */
export const logPosition = (value: number, [from, to]: readonly [number, number]): number =>
  Math.log(value / from) / Math.log(to / from);

/**
 * Returns the powers of ten in a range of positive numbers, including its ends. If there are more than `most`, only
 * every second, third, … power is returned.
 */
export const logTicks = (from: number, to: number, most: number): number[] => {
  if (!(from > 0 && to >= from && Number.isFinite(to))) return [];
  const [first, last] = [Math.ceil(Math.log10(from) - 1e-9), Math.floor(Math.log10(to) + 1e-9)];
  const every = Math.max(1, Math.ceil((last - first + 1) / most));
  return Array.from(
    { length: Math.max(0, Math.floor((last - first) / every) + 1) },
    (_, i) => 10 ** (first + i * every),
  );
};

/**
 * Formats ticks with the unit of the largest tick, and with enough decimals to distinguish adjacent ticks: 0 ms, 0.5
 * ms, 1.0 ms.
 *
 * Self-contained: the page embeds the source of this function.
 */
export const tickTexts = (ticks: readonly number[], units: Units): string[] => {
  const largest = ticks.reduce((most, tick) => Math.max(most, Math.abs(tick)), 0);
  const distance = ticks.length > 1 ? Math.abs(ticks[1]! - ticks[0]!) : largest;
  const [size, name] = units.findLast(([one]) => one <= largest * (1 + 1e-9)) ?? units[0]!;
  const decimals = distance > 0 ? Math.min(12, Math.max(0, Math.ceil(-Math.log10(distance / size) - 1e-9))) : 0;
  return ticks.map((tick) => `${(tick / size).toFixed(decimals)} ${name}`.trim());
};
