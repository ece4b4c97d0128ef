import type { Worker } from "node:worker_threads";

interface Waiting {
  readonly request: unknown;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Message of a thread after it has loaded its modules. The time limit does not include loading. */
export const threadIsReady = "ready";

/** Maximum time to wait for a thread to end, in milliseconds. */
const longestEnd = 1000;

const closed = (): Error => new Error("the page is closing");

/**
 * Thread that responds to requests in order, with one message per request. If a request exceeds the time limit, the
 * thread is terminated, because a busy parser cannot be interrupted otherwise. A new thread then processes the
 * remaining requests.
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
   * Prepares a thread, which is started by the first request.
   * @param start Starts a thread that first sends `threadIsReady`.
   * @param milliseconds Time limit of a request.
   */
  constructor(start: () => Worker, milliseconds: number) {
    this.start = start;
    this.milliseconds = milliseconds;
  }

  /**
   * Sends a request to the thread, and returns the response.
   * @throws Error with a one-line message if the request exceeds its time limit, or if the thread ends by itself, for
   * example because it is out of memory.
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

  /** Terminates the thread immediately. Pending requests are rejected. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    for (const { reject } of this.waiting.splice(0)) reject(closed());
    // An unresponsive file system blocks the thread, so the wait for its end is limited.
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
    // Uses two timers of half the time limit, because suspending this process also suspends the thread.
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
      for (const { reject } of this.waiting.splice(0)) reject(error as Error); // no memory for a thread
      return;
    }
    [this.worker, this.isReady] = [worker, false];
    worker.on("message", (answer: unknown) => {
      if (worker !== this.worker) return;
      if (answer === threadIsReady) this.isReady = true;
      else this.waiting.shift()?.resolve(answer);
      this.countDown();
    });
    let failure: Error | undefined;
    worker.on("error", (error: Error) => {
      failure = error;
    });
    // The error may arrive before responses that the thread sent earlier. When the thread exits, all responses have
    // arrived.
    worker.on("exit", (code) => {
      if (worker === this.worker) this.giveUp(failure ?? new Error(`the reader ended with code ${code}`));
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
