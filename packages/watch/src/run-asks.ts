import { startThread } from "@skein/collectives/node";
import type { Ask, AskAnswer } from "./asks-thread.ts";
import { DeadlineThread } from "./deadline-thread.ts";

/** Time limit of a request to the thread, in milliseconds. */
const deadlineMilliseconds = 30_000;
/** Memory limit of the thread in MiB. */
const threadMegabytes = 2048;

/** Responds to requests of pages about single runs, using a separate thread. */
export class RunAsks {
  private readonly thread = new DeadlineThread(
    () =>
      startThread(
        () => new URL("./asks-thread.ts", import.meta.url),
        { name: "skein-asks", resourceLimits: { maxOldGenerationSizeMb: threadMegabytes } },
        "skein-train",
      ),
    deadlineMilliseconds,
  );
  /** Pending responses, by request. Equal requests share one response. */
  private readonly asked = new Map<string, Promise<string>>();

  /** Responds to a request. @returns the response as JSON. @throws Error with a one-line message. */
  answer(ask: Ask): Promise<string> {
    const key = JSON.stringify(ask);
    const asked =
      this.asked.get(key) ??
      this.read(ask).finally(() => {
        this.asked.delete(key);
      });
    this.asked.set(key, asked);
    return asked;
  }

  close(): Promise<void> {
    return this.thread.close();
  }

  private async read(ask: Ask): Promise<string> {
    const answer = await this.thread.ask<AskAnswer>(ask);
    if ("fault" in answer) throw new Error(answer.fault);
    return answer.text;
  }
}
