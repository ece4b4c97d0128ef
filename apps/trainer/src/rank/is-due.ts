/** Whether an action with an interval of `every` steps is due after `step`. */
export const isDue = (step: number, every: number | undefined): boolean =>
  every !== undefined && every > 0 && step % every === 0;
