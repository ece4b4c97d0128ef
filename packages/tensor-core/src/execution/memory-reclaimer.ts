import { SkeinError } from "../errors.ts";

/**
 * Size in bytes of a temporary `ArrayBuffer` that triggers garbage collection: V8 counts array buffers as external
 * memory and starts a full collection after 64 MiB. The pages are never written, so a buffer needs address space but no
 * memory.
 */
const pressureBytes = 64 * 2 ** 20;

/**
 * Maximum number of temporary buffers per collection. Two collection cycles need 2 to 25 buffers in Node 24 and
 * Chromium 156, and 26 to 151 in Node 22. The limit ends the loop in engines that do not count array buffers as
 * garbage.
 */
const maxRounds = 1024;

/** Whether an allocation failed because the memory is full. */
const isMemoryRefusal = (error: unknown): boolean => error instanceof SkeinError && error.code === "out-of-memory";

/**
 * Returns a promise that resolves in a new task of the event loop. Engines call finalizers only between tasks, whereas
 * promise reactions run in the current task.
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

/** Allocates a temporary buffer, so that the engine counts another 64 MiB as garbage. */
const pressCollector = (): ArrayBuffer | undefined => {
  try {
    return new ArrayBuffer(pressureBytes);
  } catch (error) {
    // RangeError: no address space is left. The engine has run a collection before this error.
    if (!(error instanceof RangeError)) throw error;
    return undefined;
  }
};

/**
 * Runs a callback for each watched object after its garbage collection, and triggers collections when device memory is
 * low. The JavaScript engine does not count device memory: a 100 MB device array is an object of a few bytes on the
 * heap, so a loop that does not free its results would fill the device before the engine starts a collection.
 */
export class MemoryReclaimer {
  private readonly registry: FinalizationRegistry<() => void> = new FinalizationRegistry((callback) => callback());
  private collection: Promise<void> | undefined;

  /** Calls `callback` after `owner` was garbage-collected. The callback must not refer to `owner`. */
  watch(owner: object, callback: () => void): void {
    this.registry.register(owner, callback);
  }

  /**
   * Makes the engine collect unreachable objects, and waits until the callbacks have run. One collection runs at a
   * time.
   *
   * @param isEnough Returns whether to stop early. Default: collect all unreachable objects.
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
    await nextTask(); // a collection may be complete, with its callbacks still pending
    let rounds = 0;
    // Two cycles: if a cycle was already running, it keeps objects that became unreachable after they were marked.
    for (let cycle = 0; cycle < 2; cycle++) {
      const isOver = this.watchCycle();
      while (!isOver() && rounds++ < maxRounds) {
        if (isEnough()) return;
        pressCollector();
        await nextTask();
      }
    }
    await nextTask(); // other callbacks of the same collection may run after the marker's callback
  }

  /** Returns a function that reports whether a garbage collection has ended since this call. */
  private watchCycle(): () => boolean {
    let hasEnded = false;
    this.watch({}, () => {
      hasEnded = true;
    });
    return () => hasEnded;
  }
}

/**
 * Calls `allocate`. If the memory is full, collects garbage and calls `allocate` a second time.
 *
 * @param reclaim Collects garbage. Absent: the first error is thrown.
 * @throws The error of the second call.
 */
export const retryAfterReclaim = <T>(allocate: () => T, reclaim: (() => Promise<void>) | undefined): T | Promise<T> => {
  try {
    return allocate();
  } catch (error) {
    if (reclaim === undefined || !isMemoryRefusal(error)) throw error;
    return reclaim().then(allocate);
  }
};
