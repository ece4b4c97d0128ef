/** Seconds as people compare steps: three digits, in ms. */
export const milliseconds = (seconds: number): string => `${(1000 * seconds).toPrecision(3)} ms`;
