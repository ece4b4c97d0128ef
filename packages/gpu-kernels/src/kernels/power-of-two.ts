/** Returns the smallest power of two that is at least `n`, and at least 1. */
export const powerOfTwoAbove = (n: number): number => {
  let power = 1;
  while (power < n) power *= 2;
  return power;
};
