/** Times at which people are notified of a wait. */
export interface NoticeTimes {
  /** Delay of the first notice, so that short waits cause no line. */
  readonly afterMilliseconds: number;
  /** Interval of later notices, which are sent if the state has changed. */
  readonly everyMilliseconds: number;
}

export const defaultNoticeTimes: NoticeTimes = { afterMilliseconds: 1500, everyMilliseconds: 10_000 };

/** Number of intervals after which an unchanged state is reported again, as a sign of life. */
const looksUntilAgain = 6;

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
  readonly #look: () => Waiting | undefined;
  readonly #tell: (line: string) => void;
  #timer: NodeJS.Timeout;
  #told: string | undefined;
  #looks = 0;

  constructor(
    { afterMilliseconds, everyMilliseconds }: NoticeTimes,
    look: () => Waiting | undefined,
    tell: (line: string) => void,
  ) {
    this.#look = look;
    this.#tell = tell;
    this.#timer = setTimeout(() => {
      this.#speak();
      this.#timer = setInterval(() => this.#speak(), everyMilliseconds).unref();
    }, afterMilliseconds).unref();
  }

  stop(): void {
    clearTimeout(this.#timer); // Ends an interval, too.
  }

  #speak(): void {
    const waiting = this.#look();
    if (waiting === undefined) return;
    const { state, line } = waiting;
    this.#looks++;
    if (state === this.#told && this.#looks < looksUntilAgain) return;
    this.#told = state;
    this.#looks = 0;
    this.#tell(line);
  }
}
