/**
 * Limits the restarts of a run without progress: at most `most` restarts from one checkpoint. A newer checkpoint resets
 * the count. Therefore a long run survives many lost ranks, but a run that cannot start ends soon.
 */
export class RestartBudget {
  readonly most: number;
  private used = 0;
  private reached: number;

  /** Creates the budget of a run. @param step Step of the checkpoint from which the run starts. */
  constructor(most: number, step: number) {
    this.most = most;
    this.reached = step;
  }

  /**
   * Counts a restart from the checkpoint of `step`.
   *
   * @returns number of restarts since the last progress, including this restart; undefined if no restarts remain.
   */
  spend(step: number): number | undefined {
    if (step > this.reached) this.used = 0;
    this.reached = Math.max(this.reached, step);
    if (this.used === this.most) return undefined;
    this.used += 1;
    return this.used;
  }
}
