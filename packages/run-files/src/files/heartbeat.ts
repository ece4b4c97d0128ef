import { startThread } from "@skein/collectives/node";

/** Input of a heartbeat thread. */
export interface Heartbeat {
  /** Path of the lock file to touch. */
  readonly path: string;
  /** Lock id of this process. A lock file with another id belongs to another process. */
  readonly id: string;
  readonly everyMilliseconds: number;
}

/**
 * Touches the lock file of this process periodically, in a separate thread.
 *
 * @param onTaken Called once if the file belongs to another process.
 * @returns a function that ends the thread. If no thread can be started, the file is not touched, and other processes
 * assume that this process has ended.
 */
export const startHeartbeat = (beat: Heartbeat, onTaken: () => void): (() => void) => {
  try {
    const thread = startThread(
      () => new URL("./heartbeat-thread.ts", import.meta.url),
      { workerData: beat, name: "skein-heartbeat", resourceLimits: { maxYoungGenerationSizeMb: 2 } },
      "skein-train",
    );
    thread.unref();
    thread.once("message", onTaken);
    thread.once("error", () => undefined);
    return () => void thread.terminate();
  } catch {
    return () => undefined;
  }
};
