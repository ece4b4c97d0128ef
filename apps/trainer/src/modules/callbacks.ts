import { dirname } from "node:path";
import { CallbackError, ModuleError, resumeLine } from "@skein/cli/node";
import type { ModuleJob, ProgramJob } from "@skein/job/node";
import { maxWaiting, type RunEvent, WaitingEvents } from "@skein/run-files/node";
import { excerpt } from "@skein/tensor-core/backend";
import type { Interruption } from "../processes/interruption.ts";
import type { Callbacks, RunControl } from "./factories.ts";
import type { Origin } from "./checked-optimizer.ts";
import { givenName, givenObject, failWithoutProgram } from "./program-objects.ts";
import { makeOwn, moduleName } from "./load-module.ts";
import { userError } from "./user-error.ts";

const nameOf = {
  start: "onStart",
  step: "onStep",
  evaluation: "onEvaluation",
  checkpoint: "onCheckpoint",
  end: "onEnd",
} as const satisfies Readonly<Record<RunEvent["type"], keyof Callbacks>>;

const names: readonly string[] = Object.values(nameOf);

/** Default time limit, in seconds, for a callback that is running when the run ends. */
const defaultPatienceSeconds = 600;
/** Time in seconds after the end of a run at which a note names the callback that is still running. */
const reportAfterSeconds = 10;

/** Checks the callbacks of a user module. @throws ModuleError if the callbacks are invalid. */
const checkedCallbacks = (made: unknown, what: string): Callbacks => {
  const rule = `callbacks: an object with any of the functions ${names.join(", ")}`;
  if (typeof made !== "object" || made === null || Array.isArray(made))
    throw new ModuleError(`${what} returned ${excerpt(made)}, but must return ${rule}`);
  const wrong = Object.entries(made).find(
    ([name, fn]) => name.startsWith("on") && !names.includes(name) && fn !== undefined,
  );
  if (wrong !== undefined)
    throw new ModuleError(`${what} returned ${excerpt(wrong[0])}, which is never called; it must return ${rule}`);
  for (const name of names) {
    const fn = (made as Readonly<Record<string, unknown>>)[name];
    if (fn !== undefined && typeof fn !== "function")
      throw new ModuleError(`${what} returned as ${name} ${excerpt(fn)}, but must return ${rule}`);
  }
  const { patienceSeconds = defaultPatienceSeconds }: { readonly patienceSeconds?: unknown } = made;
  if (typeof patienceSeconds !== "number" || !(patienceSeconds > 0))
    throw new ModuleError(
      `${what} returned as patienceSeconds ${excerpt(patienceSeconds)}, but must return a number of seconds above 0, or Infinity for no limit`,
    );
  return made as Callbacks;
};

/**
 * Calls user functions on events of a run, one after the other, in parallel with training steps. Steps never wait for
 * these calls. If functions are slower than steps, some events are dropped, see `WaitingEvents`, so that the end of a
 * run waits only for the calls of the remaining events.
 */
export class CallbackQueue {
  private readonly waiting = new WaitingEvents<RunEvent>();
  /** Resolves when the queue of events is empty. Undefined: no call is running. */
  private calling: Promise<void> | undefined;
  /** The running call, with its start time in milliseconds of `performance.now()`. Undefined: no call is running. */
  private current: { readonly name: string; readonly madeAt: number } | undefined;
  private failure: ModuleError | undefined;
  /** Name of the call that exceeded the time limit. Undefined: no call exceeded the limit. */
  private timedOutCall: string | undefined;
  private output = "";
  /** Whether a callback has requested the end of the run. */
  hasStopped = false;
  private callbacks: Callbacks = {};
  private readonly origin: Origin;
  private readonly interruption: Interruption;

  private constructor(origin: Origin, interruption: Interruption) {
    this.origin = origin;
    this.interruption = interruption;
  }

  /**
   * Loads the callbacks of a job.
   * @param given callbacks that a program passed, for a job with `kind: program`.
   * @throws ModuleError; ConfigError if the module rejects its options.
   */
  static async load(job: ModuleJob | ProgramJob, interruption: Interruption, given?: unknown): Promise<CallbackQueue> {
    const isGiven = job.kind === "program";
    if (isGiven && given === undefined) failWithoutProgram("callbacks");
    const origin = isGiven
      ? { what: givenName("callbacks"), folder: process.cwd() }
      : { what: moduleName("callbacks", job), folder: dirname(job.file) };
    const queue = new CallbackQueue(origin, interruption);
    const stop = (): void => {
      queue.hasStopped = true;
      interruption.request();
    };
    const control: RunControl = { stop };
    const made = isGiven ? givenObject("callbacks", given, control) : makeOwn("callbacks", job, control);
    queue.callbacks = checkedCallbacks(await made, origin.what);
    return queue;
  }

  private get patienceSeconds(): number {
    return this.callbacks.patienceSeconds ?? defaultPatienceSeconds;
  }

  /**
   * Queues an event for its callback, which is called after earlier calls have returned. After a callback has thrown or
   * has exceeded the time limit, no callback is called.
   */
  take(event: RunEvent): void {
    if (event.type === "start") ({ output: this.output } = event);
    if (
      this.callbacks[nameOf[event.type]] === undefined ||
      this.failure !== undefined ||
      this.timedOutCall !== undefined
    )
      return;
    this.waiting.add(event);
    this.calling ??= this.callAll();
  }

  private async callAll(): Promise<void> {
    await Promise.resolve(); // the caller of `take` continues first
    for (let event = this.waiting.take(); event !== undefined; event = this.waiting.take()) {
      const name = nameOf[event.type];
      this.current = { name, madeAt: performance.now() };
      try {
        await (this.callbacks[name] as (event: RunEvent) => void | Promise<void>)(event);
      } catch (error) {
        this.failure = userError(error, `${this.origin.what}: ${name}`, this.origin.folder);
        this.waiting.clear();
        this.interruption.request(); // the run finishes the current step and saves
      }
    }
    this.calling = undefined; // set synchronously, because the next event starts new calls
  }

  /**
   * Waits until all calls have returned, or until the running call has exceeded its time limit, which is counted from
   * the end of the run.
   */
  private async waitForCalls(note: (line: string) => void): Promise<void> {
    const { patienceSeconds } = this;
    const overAt = performance.now();
    const gaveUp = Promise.withResolvers<void>();
    let reportedCall: typeof this.current;
    const timer = setInterval(
      () => {
        const call = this.current!;
        const seconds = (performance.now() - Math.max(overAt, call.madeAt)) / 1000;
        if (seconds >= patienceSeconds) {
          this.timedOutCall = call.name;
          this.waiting.clear();
          gaveUp.resolve();
        } else if (seconds >= reportAfterSeconds && reportedCall !== call) {
          reportedCall = call;
          const limit = patienceSeconds === Infinity ? "without a limit" : `for at most ${patienceSeconds} s`;
          note(
            `the run has ended, and waits ${limit} for ${this.origin.what}: ${call.name}, which has not returned yet`,
          );
        }
      },
      Math.min(250, patienceSeconds * 500),
    );
    try {
      await Promise.race([this.calling, gaveUp.promise]);
    } finally {
      clearInterval(timer);
    }
  }

  /**
   * Waits until all calls are done, after the run has ended.
   *
   * @param checkpoint newest checkpoint of the run. Undefined: no checkpoint was saved.
   * @param note reports a long wait to the user.
   * @returns a line with the number of skipped calls. Undefined: no call was skipped.
   * @throws ModuleError with the name and the error of a function that threw; CallbackError if a call did not return
   * within `patienceSeconds`.
   */
  async done(checkpoint: string | undefined, note: (line: string) => void): Promise<string | undefined> {
    if (this.calling !== undefined) await this.waitForCalls(note);
    const lost = this.waiting.lostDescription;
    const where = checkpoint === undefined ? "nothing was saved yet" : `${checkpoint} was saved`;
    if (this.timedOutCall !== undefined)
      throw new CallbackError(
        `the run has ended, ${where}, but ${this.origin.what}: ${this.timedOutCall} has not returned for ${this.patienceSeconds} s since; let its promise settle, or increase patienceSeconds of the callbacks`,
      );
    if (this.failure === undefined)
      return (
        lost &&
        `${this.origin.what}: onStep was not called for ${lost}, because it is slower than steps and at most ${maxWaiting} may wait; make it faster, or use onEvaluation, which is called each time`
      );
    const cure = checkpoint === undefined ? "" : `; then continue with: ${resumeLine(this.output)}`;
    throw new ModuleError(`the run was stopped, ${where}: ${this.failure.message}${cure}`, { cause: this.failure });
  }
}
