/**
 * The largest number of one digit, such as 0.003, that is not above a positive one. A logarithmic axis begins there:
 * uPlot counts from where an axis begins, and never ends when the first step leads past a power of ten.
 */
export const leadingDigit = (value: number): number => {
  const [mantissa, exponent] = value.toExponential().split("e") as [string, string];
  return Number(`${mantissa[0]}e${exponent}`);
};
