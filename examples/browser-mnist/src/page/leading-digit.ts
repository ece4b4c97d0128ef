/**
 * Truncates a positive number to its first significant digit, such as 0.003. A logarithmic axis must start at such a
 * number: uPlot counts from the start of the axis and loops forever if the first step is past a power of ten.
 */
export const leadingDigit = (value: number): number => {
  const [mantissa, exponent] = value.toExponential().split("e") as [string, string];
  return Number(`${mantissa[0]}e${exponent}`);
};
