import { parentPort, workerData } from "node:worker_threads";
import { describeError } from "@skein/cli/node";
import type { RankInput, RankMessage } from "./messages.ts";
import { trainRank } from "./train-rank.ts";

// Entry point of a rank's thread. Reports each error as a message, so that the main thread can name the rank.
const post = (message: RankMessage): void => parentPort!.postMessage(message);
trainRank(workerData as RankInput, post).catch((error: unknown) =>
  post({ type: "failed", error: describeError(error) }),
);
