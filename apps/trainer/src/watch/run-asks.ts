import { startThread } from "@skein/collectives/node";
import type { Ask, AskAnswer } from "./asks-thread.ts";
import { DeadlineThread } from "./deadline-thread.ts";

/** How long an answer may take, milliseconds, and memory of the thread that gives it, MiB. */
const deadlineMilliseconds = 30_000;
const threadMegabytes = 2048;

/** What pages ask for of one run, read by a thread of its own. */
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
  /** By ask: who asks for the same meanwhile gets the same text. */
  private readonly asked = new Map<string, Promise<string>>();

  /** @returns JSON. @throws Error in one line. */
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
