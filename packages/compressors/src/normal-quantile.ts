/**
 * Returns P(|Z| < z) for a standard normal Z, from the series `2φ(z) · Σ z^(2i+1) / (1·3·5 … (2i+1))`, in which all
 * terms are positive.
 */
const within = (z: number): number => {
  let [term, total] = [z, 0];
  for (let odd = 3; total + term !== total; odd += 2) {
    total += term;
    term *= (z * z) / odd;
  }
  return Math.sqrt(2 / Math.PI) * Math.exp((-z * z) / 2) * total;
};

/**
 * Returns the two-sided quantile z of the standard normal distribution, at most 8: |Z| exceeds z with probability
 * `tail`. Computes `Φ⁻¹(1 − tail/2)` by bisection.
 *
 * @param tail in (0, 1].
 * @example twoSidedQuantile(0.01) // 2.5758
 */
export const twoSidedQuantile = (tail: number): number => {
  let [low, high] = [0, 8];
  for (let step = 0; step < 52; step++) {
    const z = (low + high) / 2;
    if (1 - within(z) > tail) low = z;
    else high = z;
  }
  return high;
};
