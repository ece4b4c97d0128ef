import { startThread } from "@skein/collectives/node";
import type { StepHistograms } from "@skein/report";

/** What the thread says of the newest sound checkpoint of a run. */
export type CheckpointAnswer = StepHistograms | { readonly message: string };

/** How long a checkpoint may take to be read, milliseconds. */
const deadlineMilliseconds = 600_000;

/**
 * Histograms of the weights in the newest sound checkpoint of a run, by a thread: a checkpoint is read as a whole, and
 * the page goes on meanwhile.
 *
 * @param closing ends the thread at once.
 * @throws Error in one line where there is none.
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
    closing?.addEventListener("abort", giveUp("the page is being closed"));
    timer = setTimeout(giveUp(`it takes longer than ${deadlineMilliseconds / 1000} s to read`), deadlineMilliseconds);
  });
  clearTimeout(timer);
  void thread.terminate();
  if ("message" in answer) throw new Error(answer.message);
  return answer;
};
