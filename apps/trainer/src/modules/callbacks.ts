import { dirname } from "node:path";
import { excerpt } from "@skein/tensor-core/backend";
import type { Interruption } from "../processes/interruption.ts";
import { CallbackError, ModuleError } from "../errors.ts";
import type { ModuleJob, ProgramJob } from "../job/job.ts";
import { resumeLine } from "../console/own-command.ts";
import type { RunEvent } from "../run-files/run-events.ts";
import { mostWaiting, WaitingEvents } from "../run-files/waiting-events.ts";
import type { Callbacks, RunControl } from "./factories.ts";
import type { Origin } from "./checked-optimizer.ts";
import { givenName, givenThing, ofAProgram } from "./given-thing.ts";
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

/** How long the end of a run waits for a call, unless the callbacks say so. */
const usualPatienceSeconds = 600;
/** After so long people are told what the end of a run waits for. */
const quietSeconds = 10;

/** Callbacks of a user's module. @throws ModuleError for what are none. */
const checkedCallbacks = (made: unknown, what: string): Callbacks => {
  const rule = `callbacks: an object with functions ${names.join(", ")}, as many of them as it wants`;
  if (typeof made !== "object" || made === null || Array.isArray(made))
    throw new ModuleError(`${what} gave ${excerpt(made)}, but must give ${rule}`);
  const wrong = Object.entries(made).find(
    ([name, fn]) => name.startsWith("on") && !names.includes(name) && fn !== undefined,
  );
  if (wrong !== undefined)
    throw new ModuleError(`${what} gave ${excerpt(wrong[0])}, which nothing calls; it must give ${rule}`);
  for (const name of names) {
    const fn = (made as Readonly<Record<string, unknown>>)[name];
    if (fn !== undefined && typeof fn !== "function")
      throw new ModuleError(`${what} gave as ${name} ${excerpt(fn)}, but must give ${rule}`);
  }
  const { patienceSeconds = usualPatienceSeconds }: { readonly patienceSeconds?: unknown } = made;
  if (typeof patienceSeconds !== "number" || !(patienceSeconds > 0))
    throw new ModuleError(
      `${what} gave as patienceSeconds ${excerpt(patienceSeconds)}, but must give a number of seconds above 0, or Infinity for as long as it takes`,
    );
  return made as Callbacks;
};

/**
 * Calls functions of a user's when something happens in a run, one after the other, beside its steps. They hold up no
 * step: those who are slower are not called for some steps, see `WaitingEvents`, so that the end of a run waits for no
 * more calls than those of the events that are kept.
 */
export class CallbackQueue {
  private readonly waiting = new WaitingEvents<RunEvent>();
  /** Resolves once no event waits. */
  private calling: Promise<void> | undefined;
  /** The call that has not come back, and when it was made, milliseconds of `performance.now()`. */
  private current: { readonly name: string; readonly madeAt: number } | undefined;
  private failure: ModuleError | undefined;
  /** The call that is waited for no longer. */
  private givenUp: string | undefined;
  private output = "";
  /** Whether the callbacks have asked for the end of the run. */
  hasStopped = false;
  private callbacks: Callbacks = {};
  private readonly origin: Origin;
  private readonly interruption: Interruption;

  private constructor(origin: Origin, interruption: Interruption) {
    this.origin = origin;
    this.interruption = interruption;
  }

  /**
   * @param given callbacks of a program, where the job says so.
   * @throws ModuleError, ConfigError for options that the module does not take.
   */
  static async load(job: ModuleJob | ProgramJob, interruption: Interruption, given?: unknown): Promise<CallbackQueue> {
    const isGiven = job.kind === "program";
    if (isGiven && given === undefined) ofAProgram("callbacks");
    const origin = isGiven
      ? { what: givenName("callbacks"), folder: process.cwd() }
      : { what: moduleName("callbacks", job), folder: dirname(job.file) };
    const queue = new CallbackQueue(origin, interruption);
    const stop = (): void => {
      queue.hasStopped = true;
      interruption.request();
    };
    const control: RunControl = { stop };
    const made = isGiven ? givenThing("callbacks", given, control) : makeOwn("callbacks", job, control);
    queue.callbacks = checkedCallbacks(await made, origin.what);
    return queue;
  }

  private get patienceSeconds(): number {
    return this.callbacks.patienceSeconds ?? usualPatienceSeconds;
  }

  /** Call what is there for an event once the calls before it are done; none is made after one that has thrown. */
  take(event: RunEvent): void {
    if (event.type === "start") ({ output: this.output } = event);
    if (this.callbacks[nameOf[event.type]] === undefined || this.failure !== undefined || this.givenUp !== undefined)
      return;
    this.waiting.add(event);
    this.calling ??= this.callAll();
  }

  private async callAll(): Promise<void> {
    await Promise.resolve(); // whoever tells of an event is done with it first
    for (let event = this.waiting.take(); event !== undefined; event = this.waiting.take()) {
      const name = nameOf[event.type];
      this.current = { name, madeAt: performance.now() };
      try {
        await (this.callbacks[name] as (event: RunEvent) => void | Promise<void>)(event);
      } catch (error) {
        this.failure = userError(error, `${this.origin.what}: ${name}`, this.origin.folder);
        this.waiting.clear();
        this.interruption.request(); // the step at hand is done, and saved
      }
    }
    this.calling = undefined; // at once: what happens next begins anew
  }

  /**
   * Resolves once all calls have come back, or the one at hand has had its time since the run was over: whoever is
   * slow, but goes on, is waited for.
   */
  private async waitForCalls(note: (line: string) => void): Promise<void> {
    const { patienceSeconds } = this;
    const overAt = performance.now();
    const gaveUp = Promise.withResolvers<void>();
    let told: typeof this.current;
    const timer = setInterval(
      () => {
        const call = this.current!;
        const seconds = (performance.now() - Math.max(overAt, call.madeAt)) / 1000;
        if (seconds >= patienceSeconds) {
          this.givenUp = call.name;
          this.waiting.clear();
          gaveUp.resolve();
        } else if (seconds >= quietSeconds && told !== call) {
          told = call;
          const limit = patienceSeconds === Infinity ? "for as long as it takes" : `${patienceSeconds} s at most`;
          note(
            `the run is over, and waits for ${this.origin.what}: ${call.name}, which has not come back yet, ${limit}`,
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
   * Resolves once all calls are done.
   *
   * @param checkpoint of the run, which is over.
   * @param note tells people what is waited for, where that takes long.
   * @returns a line that tells how many calls were left out, where some were.
   * @throws ModuleError that tells which function threw, and what; CallbackError for one that does not come back within
   * `patienceSeconds` of the callbacks.
   */
  async done(checkpoint: string | undefined, note: (line: string) => void): Promise<string | undefined> {
    if (this.calling !== undefined) await this.waitForCalls(note);
    const lost = this.waiting.lostOnes;
    const where = checkpoint === undefined ? "nothing was saved yet" : `${checkpoint} was saved`;
    if (this.givenUp !== undefined)
      throw new CallbackError(
        `the run is over, ${where}: ${this.origin.what}: ${this.givenUp} has not come back for ${this.patienceSeconds} s since, and is waited for no longer; let its promise settle, or give it more time by patienceSeconds beside it`,
      );
    if (this.failure === undefined)
      return (
        lost &&
        `${this.origin.what}: onStep was not called for ${lost}, since it is slower than steps are and ${mostWaiting} wait for it at most; have it do less, or use onEvaluation, which is called each time`
      );
    const cure = checkpoint === undefined ? "" : `; then continue with: ${resumeLine(this.output)}`;
    throw new ModuleError(`the run was stopped, ${where}: ${this.failure.message}${cure}`, { cause: this.failure });
  }
}
