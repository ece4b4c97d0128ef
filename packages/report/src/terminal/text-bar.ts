/**
 * Computes the number of letters for each part of a bar by the largest remainder method. The numbers add up to `width`,
 * or are all 0 if all parts are 0.
 */
export const barLengths = (amounts: readonly number[], width: number): number[] => {
  const whole = amounts.reduce((sum, amount) => sum + amount, 0);
  if (!(whole > 0 && whole < Infinity)) return amounts.map(() => 0);
  const exact = amounts.map((amount) => (amount / whole) * width);
  const lengths = exact.map(Math.floor);
  const order = exact.map((_, index) => index).sort((a, b) => exact[b]! - lengths[b]! - (exact[a]! - lengths[a]!));
  const missing = Math.round(width - lengths.reduce((sum, length) => sum + length, 0));
  for (const index of order.slice(0, missing)) lengths[index]!++;
  return lengths;
};
