/**
 * Limits the restarts of a run without progress: at most `most` restarts from one checkpoint. A newer checkpoint resets
 * the count. A run of weeks can therefore survive many lost ranks, and a run that cannot start ends soon.
 */
export class RestartBudget {
  readonly most: number;
  private used = 0;
  private reached: number;

  /** @param step Step of the checkpoint from which the run starts. */
  constructor(most: number, step: number) {
    this.most = most;
    this.reached = step;
  }

  /**
   * @returns the number of this restart since the last progress, from the checkpoint of `step`. Undefined if no
   * restarts are left.
   */
  spend(step: number): number | undefined {
    if (step > this.reached) this.used = 0;
    this.reached = Math.max(this.reached, step);
    if (this.used === this.most) return undefined;
    this.used += 1;
    return this.used;
  }
}
