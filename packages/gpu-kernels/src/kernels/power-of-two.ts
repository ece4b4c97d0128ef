/** The least power of two that is not below `n`; 1 for what is below 1. */
export const powerOfTwoAbove = (n: number): number => {
  let power = 1;
  while (power < n) power *= 2;
  return power;
};
