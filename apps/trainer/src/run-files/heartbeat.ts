import { startThread } from "@skein/collectives/node";

/** What the thread of a heartbeat is given. */
export interface Heartbeat {
  /** File to touch. */
  readonly path: string;
  /** Of the holder whose file it is. */
  readonly id: string;
  readonly everyMilliseconds: number;
}

/**
 * Touch a file of this process now and then, in a thread of its own.
 *
 * @param onTaken called once if the file is another holder's.
 * @returns a function that ends the thread. Without room for a thread nothing beats: others see a process that ended.
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
