/** When people are told what is waited for. */
export interface NoticeTimes {
  /** The first time, so that what takes no time is not worth a line. */
  readonly afterMilliseconds: number;
  /** From then on, where something has changed. */
  readonly everyMilliseconds: number;
}

export const defaultNoticeTimes: NoticeTimes = { afterMilliseconds: 1500, everyMilliseconds: 10_000 };

/** What is the same is told again after so many times of looking, as a sign of life. */
const looksUntilAgain = 6;

/** What is waited for, and what people are told of it. */
export interface Waiting {
  /** A line is new where this is. */
  readonly state: string;
  readonly line: string;
}

/**
 * Tells people what is waited for, if anything, until it is stopped: after a moment, then when it changes, and now and
 * then in any case.
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
    clearTimeout(this.#timer); // ends an interval, too
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
