/** A person's wish that a run stop after its step. Outlives restarts; whoever runs ranks listens to it, and hears it once, however often it is uttered. */
export class Interruption {
  private asked = false;
  private listener: (() => void) | undefined;

  get requested(): boolean {
    return this.asked;
  }

  request(): void {
    if (this.asked) return;
    this.asked = true;
    this.listener?.();
  }

  /** Call `listener` once a stop is requested, at once if it is already. One listener at a time; `undefined` ends it. */
  listen(listener: (() => void) | undefined): void {
    this.listener = listener;
    if (this.asked) listener?.();
  }
}
