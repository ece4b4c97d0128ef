/**
 * How often a run may go on after a failure without getting further: so many restarts from one checkpoint and then no
 * more, but as many as it takes while each brings a newer one. A run of weeks outlives more than three losses, and one
 * that cannot start ends soon.
 */
export class RestartBudget {
  readonly most: number;
  private used = 0;
  private reached: number;

  /** @param step of the checkpoint that the run begins from. */
  constructor(most: number, step: number) {
    this.most = most;
    this.reached = step;
  }

  /**
   * @returns which restart since the last progress this is, from the checkpoint of `step`; undefined where none is
   * left.
   */
  spend(step: number): number | undefined {
    if (step > this.reached) this.used = 0;
    this.reached = Math.max(this.reached, step);
    if (this.used === this.most) return undefined;
    this.used += 1;
    return this.used;
  }
}
