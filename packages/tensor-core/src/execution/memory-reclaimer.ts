import { SkeinError } from "../errors.ts";

/**
 * Bytes of a throw-away `ArrayBuffer`. V8 counts array buffers as external memory and starts a full collection after 64
 * MiB of them. Their pages are never touched, so they take address space but no memory.
 */
const pressureBytes = 64 * 2 ** 20;

/**
 * Maximum number of throw-away buffers per collection. Two cycles take 2 to 25 in Node 24 and Chromium 156, and 26 to
 * 151 in Node 22. The limit is for engines that do not count array buffers.
 */
const maxRounds = 1024;

/** Whether a synchronous allocation failed because the memory is full. */
const isMemoryRefusal = (error: unknown): boolean => error instanceof SkeinError && error.code === "out-of-memory";

/**
 * Resolves in a new task of the event loop. Engines call finalizers only between tasks; promise reactions all run
 * within the current task.
 */
const nextTask = (): Promise<void> =>
  new Promise((resolve) => {
    // Browsers delay nested timers by 4 ms or more, but not messages.
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
    // The engine has no address space left. It has run a collection before it failed.
    if (!(error instanceof RangeError)) throw error;
    return undefined;
  }
};

/**
 * Runs a callback for each watched object after the engine has collected the object, and triggers a collection when
 * memory is short. The engine does not know the device memory: an array of 100 MB on a device is an object of a few
 * bytes on its heap, so a loop that drops its results fills the device before a collection starts.
 */
export class MemoryReclaimer {
  private readonly registry: FinalizationRegistry<() => void> = new FinalizationRegistry((callback) => callback());
  private collection: Promise<void> | undefined;

  /** Call `callback` after `owner` was collected. The callback must not refer to the owner. */
  watch(owner: object, callback: () => void): void {
    this.registry.register(owner, callback);
  }

  /**
   * Make the engine collect unreachable objects, and wait until the callbacks have run. One collection runs at a time.
   *
   * @param isEnough stops the collection early. Default: everything is collected.
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
    await nextTask(); // a collection may have ended, with only its callbacks pending
    let rounds = 0;
    // A cycle that was already running keeps objects that became garbage after they were marked; the next cycle does
    // not.
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

  /** Returns a function that returns whether a collection has ended since. */
  private watchCycle(): () => boolean {
    let hasEnded = false;
    this.watch({}, () => {
      hasEnded = true;
    });
    return () => hasEnded;
  }
}

/**
 * Allocate, and if the memory is full, collect garbage and try once more.
 *
 * @param reclaim collects garbage. Absent: the first error is thrown.
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
