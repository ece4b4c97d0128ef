import type { Worker } from "node:worker_threads";
import { SkeinError } from "@skein/tensor-core";
import type { RankAddress } from "../rendezvous/roster.ts";
import { startThread } from "../start-thread.ts";
import type { CompanionInput, CompanionEvent, CompanionCommand } from "./companion-messages.ts";

/**
 * Handle of a companion thread, which executes a rank's requests. Sends commands to the thread, and waits for its
 * events.
 */
export class CompanionThread {
  readonly listening: Promise<RankAddress>;
  readonly ended: Promise<void>;
  private readonly worker: Worker;
  private readonly waiting: {
    readonly type: CompanionEvent["type"];
    readonly resolve: (event: CompanionEvent) => void;
    readonly reject: (error: Error) => void;
  }[] = [];
  private failure: Error | undefined;

  constructor(input: CompanionInput, onFailure: (error: Error) => void, onNote: (line: string) => void) {
    this.worker = startThread(() => new URL("./process-companion-worker.ts", import.meta.url), {
      workerData: input,
      name: `companion ${input.connection.rank}`,
    });
    this.listening = this.next("listening").then(
      (event) => (event as Extract<CompanionEvent, { type: "listening" }>).address,
    );
    this.listening.catch(() => undefined); // `connect` or `createProcessWorld` reports the failure.
    const fail = (error: Error): void => {
      this.failure ??= error;
      for (const { reject } of this.waiting.splice(0)) reject(error);
      onFailure(error);
    };
    this.worker.on("message", (event: CompanionEvent) => {
      if (event.type === "note") return onNote(event.line);
      if (event.type === "failed") return fail(new SkeinError(event.kind, event.code, event.message));
      const at = this.waiting.findIndex(({ type }) => type === event.type);
      if (at >= 0) this.waiting.splice(at, 1)[0]!.resolve(event);
    });
    this.worker.once("error", (error) => fail(error as Error));
    this.ended = new Promise((resolve) => {
      this.worker.once("exit", () => {
        for (const { reject } of this.waiting.splice(0)) reject(this.failure ?? new Error("the companion ended"));
        resolve();
      });
    });
  }

  next(type: CompanionEvent["type"]): Promise<CompanionEvent> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    return new Promise((resolve, reject) => this.waiting.push({ type, resolve, reject }));
  }

  send(command: CompanionCommand): void {
    this.worker.postMessage(command);
  }

  async end(graceMilliseconds: number): Promise<void> {
    this.send({ type: "end" });
    const timer = setTimeout(() => void this.worker.terminate(), graceMilliseconds);
    await this.ended;
    clearTimeout(timer);
  }
}
