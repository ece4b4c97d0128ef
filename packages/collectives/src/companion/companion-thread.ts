import type { Worker } from "node:worker_threads";
import { SkeinError } from "@skein/tensor-core";
import type { RankAddress } from "../rendezvous/roster.ts";
import { startThread } from "../start-thread.ts";
import type { CompanionInput, CompanionNews, CompanionOrder } from "./companion-messages.ts";

/** A companion thread, and what it has said. */
export class CompanionThread {
  readonly listening: Promise<RankAddress>;
  readonly ended: Promise<void>;
  private readonly worker: Worker;
  private readonly waiting: {
    readonly type: CompanionNews["type"];
    readonly resolve: (news: CompanionNews) => void;
    readonly reject: (error: Error) => void;
  }[] = [];
  private failure: Error | undefined;

  constructor(input: CompanionInput, onFailure: (error: Error) => void, onNote: (line: string) => void) {
    this.worker = startThread(() => new URL("./process-companion-worker.ts", import.meta.url), {
      workerData: input,
      name: `companion ${input.connection.rank}`,
    });
    this.listening = this.next("listening").then(
      (news) => (news as Extract<CompanionNews, { type: "listening" }>).address,
    );
    this.listening.catch(() => undefined); // `connect` or `createProcessWorld` tells
    const fail = (error: Error): void => {
      this.failure ??= error;
      for (const { reject } of this.waiting.splice(0)) reject(error);
      onFailure(error);
    };
    this.worker.on("message", (news: CompanionNews) => {
      if (news.type === "note") return onNote(news.line);
      if (news.type === "failed") return fail(new SkeinError(news.kind, news.code, news.message));
      const at = this.waiting.findIndex(({ type }) => type === news.type);
      if (at >= 0) this.waiting.splice(at, 1)[0]!.resolve(news);
    });
    this.worker.once("error", (error) => fail(error as Error));
    this.ended = new Promise((resolve) => {
      this.worker.once("exit", () => {
        for (const { reject } of this.waiting.splice(0)) reject(this.failure ?? new Error("the companion ended"));
        resolve();
      });
    });
  }

  next(type: CompanionNews["type"]): Promise<CompanionNews> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    return new Promise((resolve, reject) => this.waiting.push({ type, resolve, reject }));
  }

  tell(order: CompanionOrder): void {
    this.worker.postMessage(order);
  }

  async end(graceMilliseconds: number): Promise<void> {
    this.tell({ type: "end" });
    const timer = setTimeout(() => void this.worker.terminate(), graceMilliseconds);
    await this.ended;
    clearTimeout(timer);
  }
}
