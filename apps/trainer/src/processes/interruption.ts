/**
 * A person's wish that a run stop after its step. Outlives restarts; whoever runs ranks listens to it, and hears it
 * once, however often it is uttered.
 */
export class Interruption {
  private asked = false;
  private listener: (() => void) | undefined;
  private abandonError: Error | undefined;
  private abandonListener: ((error: Error) => void) | undefined;
  private ends = true; // until somebody listens, nothing has begun

  get requested(): boolean {
    return this.asked;
  }

  /** Whether the run ends at once when it is asked to, since no step has begun that could be finished and saved. */
  get endsAtOnce(): boolean {
    return this.ends;
  }

  /**
   * Call `listener` once the run must end at once, unsaved; at once if it is already so. One listener at a time.
   */
  onAbandoned(listener: ((error: Error) => void) | undefined): void {
    this.abandonListener = listener;
    if (this.abandonError !== undefined) listener?.(this.abandonError);
  }

  /** End the run with this error, at once and unsaved. */
  abandon(error: Error): void {
    this.abandonError ??= error;
    this.abandonListener?.(this.abandonError);
  }

  request(): void {
    if (this.asked) return;
    this.asked = true;
    this.listener?.();
  }

  /**
   * Call `listener` once a stop is requested, at once if it is already. One listener at a time; `undefined` ends it.
   *
   * @param endsAtOnce whether the listener does so.
   */
  listen(listener: (() => void) | undefined, { endsAtOnce = false }: { readonly endsAtOnce?: boolean } = {}): void {
    this.listener = listener;
    this.ends = endsAtOnce;
    if (this.asked) listener?.();
  }
}
