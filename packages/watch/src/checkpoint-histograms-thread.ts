import { parentPort, workerData } from "node:worker_threads";
import {
  type Checkpoint,
  checkpointSecret,
  hasCheckpoint,
  newestCheckpoint,
  shardFilesIn,
  sharedFile,
  wholeTensors,
} from "@skein/checkpoints/node";
import { nodeFiles } from "@skein/cli/node";
import { countValues, histogramOf, rangeOf } from "@skein/run-files/node";
import type { NdArray } from "@skein/tensor-core";
import type { CheckpointAnswer } from "./checkpoint-histograms.ts";

// Entry point of the thread that computes histograms of the weights in a checkpoint.

const newestSound = (folder: string): Checkpoint => {
  if (!hasCheckpoint(nodeFiles, folder))
    throw new Error(
      "this run has saved no checkpoint, so its weights are not known; request histograms from a run while it trains",
    );
  return newestCheckpoint(nodeFiles, folder, () => undefined, checkpointSecret(process.env));
};

const answerOf = (folder: string): CheckpointAnswer => {
  const { manifest, tensors } = newestSound(folder);
  const wholeOf = wholeTensors(
    tensors.get(sharedFile) ?? new Map<string, NdArray>(),
    shardFilesIn(tensors).map(({ cuts, names }) => ({ cuts, files: names.map((part) => tensors.get(part)!) })),
  );
  const prefix = "params.";
  const paths = new Set(
    [...tensors.values()].flatMap((own) => [...own.keys()].filter((path) => path.startsWith(prefix))),
  );
  return {
    step: manifest.step,
    parameters: [...paths].flatMap((path) => {
      const array = wholeOf(path);
      if (array === undefined) return [];
      const range = rangeOf(array);
      return [
        { path: path.slice(prefix.length), shape: array.shape, weights: histogramOf(countValues(array, range), range) },
      ];
    }),
  };
};

let answer: CheckpointAnswer;
try {
  answer = answerOf(workerData as string);
} catch (error) {
  answer = { message: (error as Error).message };
}
parentPort?.postMessage(answer);
