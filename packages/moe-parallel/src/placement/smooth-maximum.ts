/** γ of the smooth maximum. Source: Lin et al. 2025 (HierMoE), which finds 5 to 19 alike. */
export const defaultGamma = 10;

/**
 * The largest of non-negative values, smoothed so that those close to it count as well:
 * max · (Σ (x / max)^γ)^(1/γ), 0 where all are 0. γ = ∞ is the plain maximum.
 */
export const smoothMaximum = (values: Iterable<number>, gamma: number): number => {
  let largest = 0;
  for (const value of values) largest = Math.max(largest, value);
  if (largest === 0 || gamma === Infinity) return largest;
  let sum = 0;
  for (const value of values) sum += (value / largest) ** gamma;
  return largest * sum ** (1 / gamma);
};
