import { startThread } from "@skein/collectives/node";
import type { StepHistograms } from "@skein/report";

/** Response of the histogram thread: histograms of the newest valid checkpoint, or an error message. */
export type CheckpointAnswer = StepHistograms | { readonly message: string };

/** Time limit for reading a checkpoint, in milliseconds. */
const deadlineMilliseconds = 600_000;

/**
 * Computes histograms of the weights in the newest valid checkpoint of a run. The checkpoint is read in a separate
 * thread, so that the page remains responsive.
 *
 * @param closing Signal that terminates the thread immediately.
 * @throws Error with a one-line message if there is no checkpoint.
 */
export const checkpointHistograms = async (folder: string, closing?: AbortSignal): Promise<StepHistograms> => {
  const thread = startThread(
    () => new URL("./checkpoint-histograms-thread.ts", import.meta.url),
    { workerData: folder, name: "skein-histograms" },
    "skein-train",
  );
  let timer: NodeJS.Timeout | undefined;
  const answer = await new Promise<CheckpointAnswer>((resolve) => {
    const giveUp = (message: string) => (): void => resolve({ message });
    thread.once("message", resolve);
    thread.once("error", ({ message }: Error) => resolve({ message }));
    closing?.addEventListener("abort", giveUp("the page is closing"));
    timer = setTimeout(giveUp(`reading takes longer than ${deadlineMilliseconds / 1000} s`), deadlineMilliseconds);
  });
  clearTimeout(timer);
  void thread.terminate();
  if ("message" in answer) throw new Error(answer.message);
  return answer;
};
