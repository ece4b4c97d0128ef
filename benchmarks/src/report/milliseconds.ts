/** Seconds as milliseconds, with three digits: "62.5", "1250". */
export const milliseconds = (seconds: number): string =>
  seconds >= 1 ? (1000 * seconds).toFixed(0) : (1000 * seconds).toPrecision(3);
