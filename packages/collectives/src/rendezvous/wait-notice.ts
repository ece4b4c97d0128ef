/** Times at which people are notified of a wait. */
export interface NoticeTimes {
  /** Delay of the first notice, so that short waits cause no line. */
  readonly afterMilliseconds: number;
  /** Interval of later notices, which are sent if the state has changed. */
  readonly everyMilliseconds: number;
}

export const defaultNoticeTimes: NoticeTimes = { afterMilliseconds: 1500, everyMilliseconds: 10_000 };

/** Number of intervals after which an unchanged state is reported again, as a sign of life. */
const checksUntilRepeat = 6;

/** State of a wait, and the line that describes it to people. */
export interface Waiting {
  /** A line is new if the state differs from the last one. */
  readonly state: string;
  readonly line: string;
}

/**
 * Reports a wait to people until it is stopped: after a short delay, when its state changes, and occasionally in any
 * case.
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
    clearTimeout(this.#timer); // Ends an interval, too.
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
