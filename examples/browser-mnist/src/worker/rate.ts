/** Number of recent steps that the rate is averaged over. */
const windowSteps = 50;

/** Steps per second over recent steps, excluding pauses. */
export class Rate {
  /** Durations of the recent steps, milliseconds, oldest first. */
  private readonly durations: number[] = [];
  private last: number | undefined;

  /** Resumes after a pause: the next step starts now. */
  resume(now: number): void {
    this.last = now;
  }

  /** Records the end of a step. */
  step(now: number): void {
    if (this.last !== undefined) this.durations.push(now - this.last);
    if (this.durations.length > windowSteps) this.durations.shift();
    this.last = now;
  }

  /** Steps per second; 0 before the first step. */
  get stepsPerSecond(): number {
    const milliseconds = this.durations.reduce((sum, duration) => sum + duration, 0);
    return milliseconds === 0 ? 0 : (1000 * this.durations.length) / milliseconds;
  }
}
