/** Schedule of the notices that inform the user about a wait. */
export interface NoticeTimes {
  /** Delay of the first notice in milliseconds, so that short waits are not reported. */
  readonly afterMilliseconds: number;
  /** Interval of later notices in milliseconds. A notice is sent if the state has changed. */
  readonly everyMilliseconds: number;
}

export const defaultNoticeTimes: NoticeTimes = { afterMilliseconds: 1500, everyMilliseconds: 10_000 };

/** Number of intervals after which an unchanged state is reported again, as a sign of life. */
const checksUntilRepeat = 6;

/** State of a wait for an event, and a human-readable line that describes the state. */
export interface Waiting {
  /**
   * Key that identifies the state. At each interval, a notice is sent if the key has changed. `line` may also contain
   * changing values, such as the remaining time, which do not cause a notice.
   */
  readonly state: string;
  readonly line: string;
}

/**
 * Reports a wait to the user until `stop` is called: after a short delay, when the state changes, and occasionally if
 * the state does not change.
 */
export class WaitNotice {
  readonly #getState: () => Waiting | undefined;
  readonly #notify: (line: string) => void;
  #timer: NodeJS.Timeout;
  #lastState: string | undefined;
  #checks = 0;

  constructor(
    { afterMilliseconds, everyMilliseconds }: NoticeTimes,
    getState: () => Waiting | undefined,
    notify: (line: string) => void,
  ) {
    this.#getState = getState;
    this.#notify = notify;
    this.#timer = setTimeout(() => {
      this.#check();
      this.#timer = setInterval(() => this.#check(), everyMilliseconds).unref();
    }, afterMilliseconds).unref();
  }

  stop(): void {
    clearTimeout(this.#timer); // Also ends an interval.
  }

  #check(): void {
    const waiting = this.#getState();
    if (waiting === undefined) return;
    const { state, line } = waiting;
    this.#checks++;
    if (state === this.#lastState && this.#checks < checksUntilRepeat) return;
    this.#lastState = state;
    this.#checks = 0;
    this.#notify(line);
  }
}
