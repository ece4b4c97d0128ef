import { type MessagePort, workerData } from "node:worker_threads";
import { nodeFileWrites } from "@skein/cli/node";
import { writePart } from "./checkpoint-part.ts";
import type { PartsToWrite, WriteAnswer } from "./part-writer.ts";

// Entry of a rank's writer thread.
const port = workerData as MessagePort;
port.on("message", ({ output, step, parts }: PartsToWrite) => {
  let answer: WriteAnswer;
  try {
    answer = { files: parts.map(({ name, content }) => writePart(nodeFileWrites, output, step, name, content)) };
  } catch (error) {
    const { message, code, stack = message } = error as NodeJS.ErrnoException;
    answer = { message, code, stack };
  }
  port.postMessage(answer);
});
