/**
 * Whether an action is due after step `step`, if it is repeated every `every` steps. If `every` is undefined or 0, it
 * is never due.
 */
export const isDue = (step: number, every: number | undefined): boolean =>
  every !== undefined && every > 0 && step % every === 0;
