import { CollectiveError } from "../errors.ts";
import type { ThreadConnection } from "./control.ts";
import { RankQueue } from "./rank-queue.ts";

/**
 * Carry out a rank's requests until the world is closed: the body of a companion thread. Blocks. A failed collective is told to the
 * rank through the control block, so the companion just ends; errors of other kinds are thrown.
 */
export const runCompanion = (connection: ThreadConnection): void => {
  const queue = new RankQueue(connection);
  try {
    for (;;) {
      const { posted } = queue;
      if (queue.control.closed || queue.control.failure() !== undefined) return;
      if (posted === queue.done) queue.waitWhilePosted(posted);
      else if (queue.tryLock()) {
        try {
          while (queue.done !== queue.posted) queue.runNext();
        } finally {
          queue.unlock();
        }
      } else queue.waitForUnlock();
    }
  } catch (error) {
    if (!(error instanceof CollectiveError)) throw error;
  }
};
