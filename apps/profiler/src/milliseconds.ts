/** Formats seconds in ms, with three digits. */
export const milliseconds = (seconds: number): string => `${(1000 * seconds).toPrecision(3)} ms`;
