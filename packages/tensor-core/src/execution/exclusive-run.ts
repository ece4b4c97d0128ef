import { ArrayStateError } from "../errors.ts";

/** Guards an executable, whose one workspace serves one run at a time, until it is released. */
export class ExclusiveRun {
  private released = false;
  private running = false;
  private give: (() => void) | undefined;

  /** @throws ArrayStateError while another run is under way, and after the release. */
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
      this.giveOnce();
    }
  }

  /** Let nothing run any more. `give` is called once: now, or when the run under way has ended. */
  release(give: () => void): void {
    if (this.released) return;
    this.released = true;
    this.give = give;
    if (!this.running) this.giveOnce();
  }

  private giveOnce(): void {
    const { give } = this;
    this.give = undefined;
    give?.();
  }
}
