/**
 * Beyond so many degrees of freedom the distribution is the normal one to a third of a percent, and the fewer are the
 * safer claim.
 */
const mostDegrees = 200;
const intervals = 400;

/** The integral of cosᵉ between two angles, by Simpson's rule. */
const cosinePower = (exponent: number, from: number, to: number): number => {
  const width = (to - from) / intervals;
  let sum = 0;
  for (let i = 0; i <= intervals; i++) {
    const weight = i === 0 || i === intervals ? 1 : i % 2 === 1 ? 4 : 2;
    // The cosine of a quarter of a circle is not quite zero in floating point, and may be less.
    sum += weight * Math.max(0, Math.cos(from + i * width)) ** exponent;
  }
  return (sum * width) / 3;
};

/**
 * Chance that a value of Student's distribution lies at least as far from zero as `t`. With t = √ν tan θ the density is
 * cosᵛ⁻¹ θ, but for a factor.
 *
 * @param degrees of freedom, ν: 1 at least; they need not be whole.
 *
 * Cost: 800 powers.
 */
export const studentTail = (t: number, degrees: number): number => {
  const freedom = Math.min(mostDegrees, Math.max(1, degrees));
  const quarter = Math.PI / 2;
  return (
    cosinePower(freedom - 1, Math.atan(Math.abs(t) / Math.sqrt(freedom)), quarter) /
    cosinePower(freedom - 1, 0, quarter)
  );
};
