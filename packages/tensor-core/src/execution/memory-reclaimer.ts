import { SkeinError } from "../errors.ts";

/**
 * Bytes of a throw-away `ArrayBuffer`. V8 counts array buffers as external memory and starts a full collection after
 * 64 MiB of them. Their pages are never touched, so they take address space and no memory.
 */
const pressureBytes = 64 * 2 ** 20;

/**
 * Maximum number of throw-away buffers per collection. Two cycles take 2 to 25 in Node 24 and Chromium 156, and 26 to
 * 151 in Node 22. The bound is for engines that do not count array buffers.
 */
const maxRounds = 1024;

/** Whether a synchronous allocation failed because the memory is full. */
const isMemoryRefusal = (error: unknown): boolean => error instanceof SkeinError && error.code === "out-of-memory";

/**
 * Resolves in a new task of the event loop. Engines call finalizers only between tasks; promises that settle in turn
 * never leave the current one.
 */
const nextTask = (): Promise<void> =>
  new Promise((resolve) => {
    // Browsers delay nested timers by 4 ms or more, messages not at all.
    const { setImmediate } = globalThis as { readonly setImmediate?: (callback: () => void) => unknown };
    if (setImmediate !== undefined) {
      setImmediate(resolve);
      return;
    }
    const { port1, port2 } = new MessageChannel();
    const received = (): void => {
      port1.close();
      resolve();
    };
    port1.addEventListener("message", received, { once: true });
    port1.start();
    port2.postMessage(undefined);
  });

/** Make the engine count 64 MiB more of garbage. */
const pressCollector = (): ArrayBuffer | undefined => {
  try {
    return new ArrayBuffer(pressureBytes);
  } catch (error) {
    // The engine has no address space left. It has collected before it refused.
    if (!(error instanceof RangeError)) throw error;
    return undefined;
  }
};

/**
 * Runs a callback for each watched object after the engine has collected the object, and makes the engine collect when
 * memory is short. The engine cannot know by itself: an array of 100 MB on a device is an object of a few bytes to it,
 * so a loop that leaves its results to the collector fills the device before a collection starts.
 */
export class MemoryReclaimer {
  private readonly registry: FinalizationRegistry<() => void> = new FinalizationRegistry((callback) => callback());
  private collection: Promise<void> | undefined;

  /** Call `callback` after `owner` was collected. The callback must not refer to the owner. */
  watch(owner: object, callback: () => void): void {
    this.registry.register(owner, callback);
  }

  /**
   * Make the engine collect what the program no longer refers to, and wait until the callbacks have run. One collection
   * runs at a time.
   *
   * @param isEnough ends the collection early. Default: everything is collected.
   */
  async collect(isEnough: () => boolean = () => false): Promise<void> {
    while (this.collection !== undefined) {
      await this.collection;
      if (isEnough()) return;
    }
    this.collection = this.collectGarbage(isEnough);
    try {
      await this.collection;
    } finally {
      this.collection = undefined;
    }
  }

  private async collectGarbage(isEnough: () => boolean): Promise<void> {
    await nextTask(); // a collection may have ended, and only its callbacks be missing
    let rounds = 0;
    // A cycle that was under way when this began keeps what became garbage after it was marked; the next one does not.
    for (let cycle = 0; cycle < 2; cycle++) {
      const isOver = this.watchCycle();
      while (!isOver() && rounds++ < maxRounds) {
        if (isEnough()) return;
        pressCollector();
        await nextTask();
      }
    }
    await nextTask(); // callbacks of the same collection may follow that of the marker
  }

  /** Returns a function that says whether a collection has ended since. */
  private watchCycle(): () => boolean {
    let over = false;
    this.watch({}, () => {
      over = true;
    });
    return () => over;
  }
}

/**
 * Allocate, and if the memory is full, collect garbage and try once more.
 *
 * @param reclaim collects. Absent: the first error is thrown.
 * @throws the error of the second try.
 */
export const retryAfterReclaim = <T>(allocate: () => T, reclaim: (() => Promise<void>) | undefined): T | Promise<T> => {
  try {
    return allocate();
  } catch (error) {
    if (reclaim === undefined || !isMemoryRefusal(error)) throw error;
    return reclaim().then(allocate);
  }
};
