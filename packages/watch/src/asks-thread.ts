import { parentPort } from "node:worker_threads";
import { readHistograms } from "@skein/run-files/node";
import { threadIsReady } from "./deadline-thread.ts";
import { readSamples } from "./read-samples.ts";
import { runDetails } from "./run-details.ts";
import { listTraces } from "./run-listings.ts";

// Entry point of the thread that reads data of a run requested by a page. The thread can be terminated while it is
// busy.

export type Ask =
  | { readonly kind: "details" | "samples" | "traces"; readonly folder: string }
  | { readonly kind: "histograms"; readonly folder: string; readonly step: number | undefined };

/** Response to a request: JSON text, or the reason for a failure. */
export type AskAnswer = { readonly text: string } | { readonly fault: string };

const read = (ask: Ask): unknown => {
  switch (ask.kind) {
    case "details":
      return runDetails(ask.folder);
    case "samples":
      return readSamples(ask.folder);
    case "traces":
      return listTraces(ask.folder);
    case "histograms":
      return readHistograms(ask.folder, ask.step);
  }
};

const answerOf = async (ask: Ask): Promise<AskAnswer> => {
  try {
    return { text: JSON.stringify(await read(ask)) };
  } catch (error) {
    return { fault: (error as Error).message };
  }
};

// Responses are sent in the order of the requests.
let last: Promise<void> = Promise.resolve();
parentPort!.on("message", (ask: Ask) => {
  last = last.then(async () => parentPort!.postMessage(await answerOf(ask)));
});
parentPort!.postMessage(threadIsReady);
