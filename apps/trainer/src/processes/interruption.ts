/**
 * A request of a person that a run stop after its current step. It persists over restarts; the listener is called once,
 * however often a stop is requested.
 */
export class Interruption {
  private wasRequested = false;
  private listener: (() => void) | undefined;
  private abandonError: Error | undefined;
  private abandonListener: ((error: Error) => void) | undefined;
  private ends = true; // without a listener, nothing has started

  get requested(): boolean {
    return this.wasRequested;
  }

  /** Whether the run ends immediately on a request, because no step has started that could be finished and saved. */
  get endsAtOnce(): boolean {
    return this.ends;
  }

  /**
   * Calls `listener` when the run must end immediately without saving; immediately if that is already so. One listener
   * at a time.
   */
  onAbandoned(listener: ((error: Error) => void) | undefined): void {
    this.abandonListener = listener;
    if (this.abandonError !== undefined) listener?.(this.abandonError);
  }

  /** Ends the run with this error, immediately and without saving. */
  abandon(error: Error): void {
    this.abandonError ??= error;
    this.abandonListener?.(this.abandonError);
  }

  request(): void {
    if (this.wasRequested) return;
    this.wasRequested = true;
    this.listener?.();
  }

  /**
   * Calls `listener` when a stop is requested; immediately if it was already requested. One listener at a time;
   * `undefined` removes it.
   *
   * @param endsAtOnce whether the listener ends the run immediately.
   */
  listen(listener: (() => void) | undefined, { endsAtOnce = false }: { readonly endsAtOnce?: boolean } = {}): void {
    this.listener = listener;
    this.ends = endsAtOnce;
    if (this.wasRequested) listener?.();
  }
}
