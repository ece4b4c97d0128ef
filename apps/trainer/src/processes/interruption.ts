/**
 * Request to stop a run after its current step, on behalf of the user. The request persists over restarts. A listener
 * is called only once, even if a stop is requested several times.
 */
export class Interruption {
  private wasRequested = false;
  private listener: (() => void) | undefined;
  private abandonError: Error | undefined;
  private abandonListener: ((error: Error) => void) | undefined;
  private ends = true; // without a listener, no step has started

  get requested(): boolean {
    return this.wasRequested;
  }

  /** Whether a stop request ends the run immediately, because no step has started that must be finished and saved. */
  get endsAtOnce(): boolean {
    return this.ends;
  }

  /**
   * Calls `listener` when the run must end immediately without saving, or at once if the run is already abandoned. Only
   * one listener at a time.
   */
  onAbandoned(listener: ((error: Error) => void) | undefined): void {
    this.abandonListener = listener;
    if (this.abandonError !== undefined) listener?.(this.abandonError);
  }

  /** Ends the run with an error, immediately and without saving. */
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
   * Calls `listener` when a stop is requested, or at once if a stop was already requested. Only one listener at a time;
   * `undefined` removes it.
   *
   * @param endsAtOnce Whether the listener ends the run immediately.
   */
  listen(listener: (() => void) | undefined, { endsAtOnce = false }: { readonly endsAtOnce?: boolean } = {}): void {
    this.listener = listener;
    this.ends = endsAtOnce;
    if (this.wasRequested) listener?.();
  }
}
