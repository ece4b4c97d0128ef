/** Maximum delay caused by sleeping, as a fraction of the time waited so far. */
const share = 1 / 32;
const minMilliseconds = 0.05;
const maxMilliseconds = 1;

/**
 * Prevents a thread that awaits a device from using a complete core. Dawn in Node polls once per iteration of the event
 * loop, and iterates as fast as possible while one of its promises is pending. If the device is the processor itself,
 * or compiles shaders on it, each iteration takes time from the awaited work. So during an await, the thread sleeps in
 * each iteration for a fraction of the time since the last result, at most 1 ms.
 */
export class EventLoopBrake {
  private readonly never = new Int32Array(new SharedArrayBuffer(4));
  private awaited = 0;
  private lastResultAt = 0;
  private turning = false;

  /** Slows down the event loop until `pending` has settled. */
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

/**
 * Throttles that keep the event loop from polling at full speed while promises of a WebGPU instance are pending, by
 * instance. In Node, every instance has a throttle.
 */
export const brakes: WeakMap<GPU, EventLoopBrake> = new WeakMap();
