import { closeSync, constants, fstatSync, futimesSync, openSync, readSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import type { Heartbeat } from "./heartbeat.ts";

// Entry of the thread that touches the file of a holder: the main thread may be busy for minutes. Imports nothing of
// ours, so that it starts at once.

const { path, id, everyMilliseconds } = workerData as Heartbeat;
const content = Buffer.alloc(4096);
// Opening a pipe waits for its writer, unless asked not to.
const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Touch the file if it is ours. @returns whether it is another's. */
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
    // The disk is away, or a start that looks at the file has moved it aside: the next beat tries again.
  }
}, everyMilliseconds);
