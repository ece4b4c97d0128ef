/**
 * Computes the error function with an error of about 1e-15, by the series
 * `erf x = 2/√π · e^(-x²) Σ 2ⁿ x^(2n+1) / (2n+1)!!`, in which all terms have the same sign. Source: Abramowitz and
 * Stegun 7.1.6.
 */
export const erfOf = (x: number): number => {
  if (Math.abs(x) > 6) return Math.sign(x);
  let term = x;
  let total = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(total); n++) {
    term *= (2 * x * x) / (2 * n + 1);
    total += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * total;
};
