import type { Command } from "../messages.ts";
import { TrainingService } from "./training-service.ts";

const serve = (): void => {
  const service = new TrainingService((message, transfer = []) => postMessage(message, { transfer }));
  // Commands run sequentially, because each command depends on the previous command.
  let queue: Promise<void> = Promise.resolve();
  addEventListener("message", ({ data: command }: MessageEvent<Command>) => {
    queue = queue.then(() => service.execute(command));
    queue.catch((error: unknown) => service.fail(error));
  });
};

serve();
