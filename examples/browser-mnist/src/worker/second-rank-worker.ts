import { createCommunicator } from "@skein/collectives";
import { openGroupState, type WorldConnection } from "@skein/collectives/transport";
import { createCpuBackend } from "@skein/cpu-kernels";
import type { Backend } from "@skein/tensor-core";
import { type DigitRecords, DigitTraining } from "./digit-training.ts";
import type { RankCommand, RankReport } from "./second-rank.ts";

const report = (message: RankReport): void => postMessage(message);

const serve = (): void => {
  let backend: Backend;
  let records: DigitRecords;
  let connection: WorldConnection | undefined;
  let training: DigitTraining | undefined;

  const execute = async (command: RankCommand): Promise<void> => {
    switch (command.type) {
      case "open":
        backend = await createCpuBackend(command.shared);
        records = command.records;
        return;
      case "begin":
        training?.release();
        ({ connection } = command);
        training = await DigitTraining.begin({
          backend,
          records,
          settings: command.settings,
          communicator: createCommunicator(connection),
        });
        return report({ type: "begun" });
      case "step":
        await (await training!.step()).loss;
    }
  };
  let queue: Promise<void> = Promise.resolve();
  addEventListener("message", ({ data: command }: MessageEvent<RankCommand>) => {
    queue = queue.then(() => execute(command));
    queue.catch((error: unknown) => {
      if (connection !== undefined) openGroupState(connection).failWith(error, 0); // rank 0 stops waiting
      report({ type: "failed", message: error instanceof Error ? error.message : String(error) });
    });
  });
};

serve();
