import { ArrayStateError } from "../errors.ts";

/** Lock of an executable, whose workspace supports only one run at a time. */
export class ExclusiveRun {
  private released = false;
  private running = false;
  private give: (() => void) | undefined;

  /** Runs `work` exclusively. Throws ArrayStateError during another run, and after `release`. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.released) throw new ArrayStateError("this executable was released; compile the function again");
    if (this.running)
      throw new ArrayStateError(
        "this executable is still running and has one workspace; await the call before the next one",
      );
    this.running = true;
    try {
      return await work();
    } finally {
      this.running = false;
      this.releaseOnce();
    }
  }

  /** Rejects further runs. Calls `give` exactly once: immediately, or after the current run. */
  release(give: () => void): void {
    if (this.released) return;
    this.released = true;
    this.give = give;
    if (!this.running) this.releaseOnce();
  }

  private releaseOnce(): void {
    const { give } = this;
    this.give = undefined;
    give?.();
  }
}
