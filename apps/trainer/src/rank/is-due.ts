/**
 * Whether an action that is repeated every `every` steps is due after step `step`. The action is never due if `every`
 * is undefined or 0.
 */
export const isDue = (step: number, every: number | undefined): boolean =>
  every !== undefined && every > 0 && step % every === 0;
