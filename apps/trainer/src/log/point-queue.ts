import { setTimeout as startTimer } from "node:timers";
import { setTimeout } from "node:timers/promises";
import { type MlflowPoint, MlflowFault, maxPoints } from "./mlflow-client.ts";

/** Maximum number of points in the queue, which take a few megabytes. */
const maxWaiting = 50_000;
const sendEvery = 1000;
const longestWait = 60_000;
/**
 * Maximum number of attempts to send at the end of a run. Several attempts give a restarting server time to respond,
 * but limit the wait of the run.
 */
const lastTries = 3;

export interface QueueInput {
  /** Sends at most `maxPoints` points. @throws MlflowFault. */
  readonly send: (points: readonly MlflowPoint[]) => Promise<void>;
  /** Called once, at the first failure, with a line for the user that describes the failure. */
  readonly note: (line: string) => void;
  /** Pause between attempts, in milliseconds. Each failure doubles the pause, up to a minute. Default: 1000. */
  readonly every?: number;
}

/**
 * Queue of points that are sent to a server during training. Training never waits for the queue. While the server does
 * not respond, the queue keeps the newest points. Rejected and dropped points are counted as lost.
 */
export class PointQueue {
  lost = 0;
  /** Error of the first failure. Undefined: no failure. */
  fault: MlflowFault | undefined;
  private readonly input: QueueInput;
  private readonly every: number;
  private waiting: MlflowPoint[] = [];
  private inFlight = 0;
  private isOver = false;
  private pause: number;
  private timer: NodeJS.Timeout | undefined;
  private sending: Promise<boolean> | undefined;

  constructor(input: QueueInput) {
    this.input = input;
    this.every = input.every ?? sendEvery;
    this.pause = this.every;
    this.plan();
  }

  add(points: readonly MlflowPoint[]): void {
    this.waiting.push(...points);
    const tooMany = this.waiting.length - maxWaiting;
    if (tooMany < maxPoints) return; // drops many points at once, because each removal moves the rest of the list
    this.waiting = this.waiting.slice(tooMany);
    this.lost += tooMany;
  }

  /**
   * Sends the remaining points within `patience` milliseconds and `lastTries` attempts. Points that are not sent by
   * then are lost.
   */
  async end(patience: number): Promise<void> {
    this.isOver = true;
    clearTimeout(this.timer);
    const deadline = AbortSignal.timeout(patience);
    const isLate = new Promise<boolean>((resolve) => deadline.addEventListener("abort", () => resolve(false)));
    // The points in flight count as lost unless the server responds, because it may have been down when the request
    // started.
    if (this.sending !== undefined) await Promise.race([this.sending, isLate]);
    for (let tries = 0; this.waiting.length + this.inFlight > 0 && !deadline.aborted; tries++) {
      if (tries > 0) await Promise.race([setTimeout(this.every), isLate]);
      const isSent = await Promise.race([this.send(), isLate]);
      if (!isSent && tries === lastTries - 1) break;
    }
    this.lost += this.waiting.length + this.inFlight;
    this.waiting = [];
  }

  private plan(): void {
    if (this.isOver) return;
    this.timer = startTimer(() => {
      void this.send().then((isSent) => {
        this.pause = isSent ? this.every : Math.min(longestWait, 2 * this.pause);
        this.plan();
      });
    }, this.pause);
    this.timer.unref();
  }

  /** Sends queued points. @returns whether the server has responded. */
  private send(): Promise<boolean> {
    this.sending ??= this.sendAll().finally(() => {
      this.sending = undefined;
    });
    return this.sending;
  }

  private async sendAll(): Promise<boolean> {
    while (this.waiting.length > 0) {
      const some = this.waiting.splice(0, maxPoints);
      this.inFlight = some.length;
      try {
        await this.input.send(some);
      } catch (error) {
        const fault = error instanceof MlflowFault ? error : new MlflowFault((error as Error).message, true);
        if (this.fault === undefined) this.input.note(fault.message);
        this.fault ??= fault;
        if (fault.isLasting) this.lost += some.length;
        else {
          this.waiting.unshift(...some);
          return false;
        }
      } finally {
        this.inFlight = 0;
      }
    }
    return true;
  }
}
