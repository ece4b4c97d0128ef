import type { Command } from "../messages.ts";
import { TrainingService } from "./training-service.ts";

const serve = (): void => {
  const service = new TrainingService((message, transfer = []) => postMessage(message, { transfer }));
  // One command after another: each finds what the one before it left.
  let queue: Promise<void> = Promise.resolve();
  addEventListener("message", ({ data: command }: MessageEvent<Command>) => {
    queue = queue.then(() => service.carryOut(command));
    queue.catch((error: unknown) => service.fail(error));
  });
};

serve();
