import type { Worker } from "node:worker_threads";

interface Waiting {
  readonly request: unknown;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Message of a thread after it has loaded its files; the time limit does not include loading. */
export const threadIsReady = "ready";

/** Maximum time for a thread to end, milliseconds. */
const longestEnd = 1000;

const closed = (): Error => new Error("the page is closing");

/**
 * A thread that answers requests in order, one message each. A request that exceeds the time limit terminates the
 * thread, and a new thread processes the other requests, because nothing else can interrupt a parser.
 */
export class DeadlineThread {
  private readonly start: () => Worker;
  private readonly milliseconds: number;
  private readonly waiting: Waiting[] = [];
  private worker: Worker | undefined;
  private isReady = false;
  private isClosed = false;
  private timer: NodeJS.Timeout | undefined;

  /**
   * @param start starts a thread that first sends `threadIsReady`.
   * @param milliseconds time limit of a request.
   */
  constructor(start: () => Worker, milliseconds: number) {
    this.start = start;
    this.milliseconds = milliseconds;
  }

  /**
   * @throws Error in one line if the request exceeds its time limit, or the thread ends by itself, as without memory.
   */
  ask<Answer>(request: unknown): Promise<Answer> {
    if (this.isClosed) return Promise.reject(closed());
    return new Promise((resolve, reject) => {
      this.waiting.push({ request, resolve: resolve as (answer: unknown) => void, reject });
      if (this.worker === undefined) this.begin();
      else this.worker.postMessage(request);
      if (this.waiting.length === 1) this.countDown();
    });
  }

  /** Terminate the thread at once. Unanswered requests are rejected. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    for (const { reject } of this.waiting.splice(0)) reject(closed());
    // A file system that does not answer blocks the thread, which is then not waited for.
    const ended = this.worker?.terminate();
    this.worker?.unref();
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([
      ended,
      new Promise((resolve) => {
        timer = setTimeout(resolve, longestEnd);
      }),
    ]);
    clearTimeout(timer);
  }

  private countDown(): void {
    clearTimeout(this.timer);
    if (!this.isReady || this.waiting.length === 0) return;
    // Two timers of half the limit: if this process was suspended, the thread had no time either.
    const half = this.milliseconds / 2;
    this.timer = setTimeout(() => {
      this.timer = setTimeout(() => {
        this.giveUp(new Error(`reading takes longer than ${this.milliseconds / 1000} s`));
      }, half);
    }, half);
  }

  private begin(): void {
    let worker: Worker;
    try {
      worker = this.start();
    } catch (error) {
      for (const { reject } of this.waiting.splice(0)) reject(error as Error); // no memory or handle for a thread
      return;
    }
    [this.worker, this.isReady] = [worker, false];
    worker.on("message", (answer: unknown) => {
      if (worker !== this.worker) return;
      if (answer === threadIsReady) this.isReady = true;
      else this.waiting.shift()?.resolve(answer);
      this.countDown();
    });
    worker.on("error", (error: Error) => {
      if (worker === this.worker) this.giveUp(error);
    });
    for (const { request } of this.waiting) worker.postMessage(request);
  }

  private giveUp(error: Error): void {
    clearTimeout(this.timer);
    void this.worker?.terminate();
    this.worker = undefined;
    const first = this.waiting.shift();
    if (this.waiting.length > 0) this.begin();
    first?.reject(error);
  }
}
