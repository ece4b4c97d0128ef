import { closeSync, constants, fstatSync, futimesSync, openSync, readSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import type { Heartbeat } from "./heartbeat.ts";

// Entry point of the thread that touches the lock file of a folder while the main thread is busy, which may take
// minutes. Imports no modules of this package, so that the thread starts immediately.

const { path, id, everyMilliseconds } = workerData as Heartbeat;
const content = Buffer.alloc(4096);
// Without O_NONBLOCK, opening a named pipe waits for its writer.
const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Touches the lock file if it belongs to this process. @returns whether the lock file belongs to another process. */
const beat = (): boolean => {
  const file = openSync(path, flags);
  try {
    if (!fstatSync(file).isFile()) return false;
    const length = readSync(file, content, 0, content.length, 0);
    const isOurs = content.subarray(0, length).includes(id);
    const now = new Date();
    if (isOurs) futimesSync(file, now, now);
    return !isOurs && length > 0;
  } finally {
    closeSync(file);
  }
};

const timer = setInterval(() => {
  try {
    if (!beat()) return;
    clearInterval(timer);
    parentPort!.postMessage("taken");
  } catch {
    // The disk is unavailable, or another starting process has temporarily moved the file to check it. The next beat
    // retries.
  }
}, everyMilliseconds);
