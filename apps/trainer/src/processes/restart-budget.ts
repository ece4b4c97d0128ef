/**
 * Limits the restarts of a run without progress: a maximum number of restarts from one checkpoint, and a new budget
 * with each newer checkpoint. So a run of weeks survives many losses, and a run that cannot start ends soon.
 */
export class RestartBudget {
  readonly most: number;
  private used = 0;
  private reached: number;

  /** @param step of the checkpoint that the run starts from. */
  constructor(most: number, step: number) {
    this.most = most;
    this.reached = step;
  }

  /**
   * @returns number of this restart since the last progress, from the checkpoint of `step`; undefined if the budget is
   * used up.
   */
  spend(step: number): number | undefined {
    if (step > this.reached) this.used = 0;
    this.reached = Math.max(this.reached, step);
    if (this.used === this.most) return undefined;
    this.used += 1;
    return this.used;
  }
}
