/**
 * Maximum degrees of freedom. Above this number, the distribution differs from the normal distribution by less than a
 * third of a percent, and the limit gives the more cautious result.
 */
const maxDegrees = 200;
const intervals = 400;

/** Computes the integral of cosᵉ, with e = `exponent`, between two angles by Simpson's rule. */
const cosinePower = (exponent: number, from: number, to: number): number => {
  const width = (to - from) / intervals;
  let sum = 0;
  for (let i = 0; i <= intervals; i++) {
    const weight = i === 0 || i === intervals ? 1 : i % 2 === 1 ? 4 : 2;
    // The cosine of π/2 is not exactly zero in floating point, and may be negative.
    sum += weight * Math.max(0, Math.cos(from + i * width)) ** exponent;
  }
  return (sum * width) / 3;
};

/**
 * Computes the two-sided p-value of `t` in Student's distribution: the probability of an absolute value of at least
 * |t|. With t = √ν tan θ, the density is proportional to cosᵛ⁻¹ θ.
 *
 * @param degrees Degrees of freedom ν, at least 1; not necessarily an integer.
 *
 * Cost: 800 evaluations of a power.
 */
export const studentTail = (t: number, degrees: number): number => {
  const freedom = Math.min(maxDegrees, Math.max(1, degrees));
  const quarter = Math.PI / 2;
  return (
    cosinePower(freedom - 1, Math.atan(Math.abs(t) / Math.sqrt(freedom)), quarter) /
    cosinePower(freedom - 1, 0, quarter)
  );
};
