/** Number of recent steps over which the rate is averaged. */
const windowSteps = 50;

/** Computes the number of steps per second over recent steps, excluding pauses. */
export class Rate {
  /** Durations of the recent steps in milliseconds, oldest first. */
  private readonly durations: number[] = [];
  private last: number | undefined;

  /** Resumes after a pause. The next step starts at `now`. */
  resume(now: number): void {
    this.last = now;
  }

  /** Records the end of a step at `now`. */
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
