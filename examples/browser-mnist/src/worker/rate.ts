/** How many of the last steps a rate is taken over. */
const windowSteps = 50;

/** Steps per second over the last steps, standstills left out. */
export class Rate {
  /** Milliseconds that each of the last steps took, oldest first. */
  private readonly durations: number[] = [];
  private last: number | undefined;

  /** Training goes on: the next step begins now. */
  resume(now: number): void {
    this.last = now;
  }

  /** A step is done. */
  step(now: number): void {
    if (this.last !== undefined) this.durations.push(now - this.last);
    if (this.durations.length > windowSteps) this.durations.shift();
    this.last = now;
  }

  /** 0 before the first step. */
  get stepsPerSecond(): number {
    const milliseconds = this.durations.reduce((sum, duration) => sum + duration, 0);
    return milliseconds === 0 ? 0 : (1000 * this.durations.length) / milliseconds;
  }
}
