/**
 * Smooth maximum, which also decreases if smaller values decrease: max · (Σ (x / max)^γ)^(1 / γ). At least the maximum,
 * at most n^(1 / γ) times the maximum; 0 for no values and for zeros.
 *
 * @param values 0 or more.
 * @param gamma γ > 0; larger values are closer to the maximum. Default: 10, as published; from 5 to 19 little changed.
 *
 * Source: arXiv 2508.09591 (HierMoE).
 */
export const smoothMaximum = (values: ArrayLike<number>, gamma = 10): number => {
  let largest = 0;
  for (let i = 0; i < values.length; i++) largest = Math.max(largest, values[i]!);
  if (largest === 0) return 0;
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += (values[i]! / largest) ** gamma;
  return largest * sum ** (1 / gamma);
};
