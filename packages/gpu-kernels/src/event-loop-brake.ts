/** Maximum delay caused by sleeping, as a share of the time waited. */
const share = 1 / 32;
const minMilliseconds = 0.05;
const maxMilliseconds = 1;

/**
 * Keeps a thread that awaits a device from using a complete core. Dawn in Node polls once per turn of the event loop,
 * and turns the loop as fast as possible while one of its promises is pending. If the device is the processor itself,
 * or compiles shaders on it, each turn takes time from the awaited work. So during an await, the thread sleeps in each
 * turn for a share of the time since the last result, at most 1 ms.
 */
export class EventLoopBrake {
  private readonly never = new Int32Array(new SharedArrayBuffer(4));
  private awaited = 0;
  private lastResultAt = 0;
  private turning = false;

  /** Brake until `pending` has settled. */
  hold(pending: Promise<unknown>): void {
    this.awaited++;
    this.lastResultAt = performance.now();
    const settled = (): void => {
      this.awaited--;
      this.lastResultAt = performance.now();
    };
    pending.then(settled, settled);
    if (this.turning) return;
    this.turning = true;
    setImmediate(this.turn);
  }

  private readonly turn = (): void => {
    this.turning = this.awaited > 0;
    if (!this.turning) return;
    const milliseconds = Math.min(maxMilliseconds, share * (performance.now() - this.lastResultAt));
    if (milliseconds >= minMilliseconds) Atomics.wait(this.never, 0, 0, milliseconds);
    setImmediate(this.turn);
  };
}

/** Instances whose promises turn the event loop, that is, instances in Node. */
export const brakes: WeakMap<GPU, EventLoopBrake> = new WeakMap();
