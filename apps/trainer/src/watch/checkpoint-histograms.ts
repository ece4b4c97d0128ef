import { startThread } from "@skein/collectives/node";
import type { StepHistograms } from "@skein/report";

/** What the thread says of the newest sound checkpoint of a run. */
export type CheckpointAnswer = StepHistograms | { readonly message: string };

/**
 * Histograms of the weights in the newest sound checkpoint of a run, by a thread: a checkpoint is read as a whole, and
 * the page goes on meanwhile.
 *
 * @throws Error in one line where there is none.
 */
export const checkpointHistograms = async (folder: string): Promise<StepHistograms> => {
  const thread = startThread(
    () => new URL("./checkpoint-histograms-thread.ts", import.meta.url),
    { workerData: folder, name: "skein-histograms" },
    "skein-train",
  );
  const answer = await new Promise<CheckpointAnswer>((resolve) => {
    thread.once("message", resolve);
    thread.once("error", ({ message }: Error) => resolve({ message }));
  });
  void thread.terminate();
  if ("message" in answer) throw new Error(answer.message);
  return answer;
};
