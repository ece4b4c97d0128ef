/**
 * Default γ of the smooth maximum. Source: Lin et al. 2025 (HierMoE), where values from 5 to 19 perform equally well.
 */
export const defaultGamma = 10;

/**
 * Returns a smooth maximum of non-negative values, to which values close to the maximum also contribute: max · (Σ (x /
 * max)^γ)^(1/γ); 0 if all values are 0. γ = ∞ gives the exact maximum.
 */
export const smoothMaximum = (values: Iterable<number>, gamma: number): number => {
  let largest = 0;
  for (const value of values) largest = Math.max(largest, value);
  if (largest === 0 || gamma === Infinity) return largest;
  let sum = 0;
  for (const value of values) sum += (value / largest) ** gamma;
  return largest * sum ** (1 / gamma);
};
