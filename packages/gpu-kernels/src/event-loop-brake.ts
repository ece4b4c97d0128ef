/** Of the time that was waited, so much may be lost by sleeping on. */
const share = 1 / 32;
const leastMilliseconds = 0.05;
const mostMilliseconds = 1;

/**
 * Keeps a thread that awaits a device from taking a whole core. Dawn in Node looks for news once in each turn of the
 * event loop, and turns the loop as fast as it can while a promise of it is open: on a processor that is also the
 * device, or compiles its shaders, each turn takes from the work that is awaited. So, while something is awaited, this
 * lets the thread sleep in each turn for a share of the time for which there was no news, and for 1 ms at most.
 */
export class EventLoopBrake {
  private readonly never = new Int32Array(new SharedArrayBuffer(4));
  private awaited = 0;
  private newsAt = 0;
  private turning = false;

  /** Brake until `pending` has settled. */
  hold(pending: Promise<unknown>): void {
    this.awaited++;
    this.newsAt = performance.now();
    const settled = (): void => {
      this.awaited--;
      this.newsAt = performance.now();
    };
    pending.then(settled, settled);
    if (this.turning) return;
    this.turning = true;
    setImmediate(this.turn);
  }

  private readonly turn = (): void => {
    this.turning = this.awaited > 0;
    if (!this.turning) return;
    const milliseconds = Math.min(mostMilliseconds, share * (performance.now() - this.newsAt));
    if (milliseconds >= leastMilliseconds) Atomics.wait(this.never, 0, 0, milliseconds);
    setImmediate(this.turn);
  };
}

/** Instances whose promises turn the event loop: those of Node. */
export const brakes: WeakMap<GPU, EventLoopBrake> = new WeakMap();
