import { ArrayStateError } from "../errors.ts";

/** Guards an executable, whose single workspace serves one run at a time, until it is released. */
export class ExclusiveRun {
  private released = false;
  private running = false;
  private give: (() => void) | undefined;

  /** @throws ArrayStateError while another run is in progress, and after the release. */
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

  /** Reject further runs. `give` is called once: now, or when the current run has ended. */
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
