import type { ControlBlock } from "./control-block.ts";
import { expressWord } from "./layout.ts";

/** What a rank's thread waits for on a connection of its own. */
export interface ExpressWait {
  /** How many such waits there have been: another number is another wait. */
  readonly count: number;
  readonly peer: number;
  readonly tag: number;
  readonly lane: number;
  /** The peer has ended the connection. */
  readonly ended: boolean;
}

const inUse = 1;
const closed = 2;

/**
 * What the two threads of a rank tell each other of the connections that the rank's own thread reads and writes: the
 * companion opened them, closes them, and watches over the time of each wait.
 */
export class ExpressWords {
  private readonly words: Int32Array;
  private readonly base: number;
  private waits = 0;

  constructor(control: ControlBlock) {
    this.words = control.words;
    this.base = control.eventAt("message"); // the first word of the rank
  }

  /**
   * Begin to read and write.
   *
   * @returns false once the connections are closed: their descriptors may be another file's.
   */
  take(): boolean {
    return Atomics.compareExchange(this.words, this.base + expressWord.use, 0, inUse) === 0;
  }

  leave(): void {
    Atomics.store(this.words, this.base + expressWord.use, 0);
  }

  /** Let nobody begin again. @returns false while the other thread reads and writes. */
  tryClose(): boolean {
    return Atomics.compareExchange(this.words, this.base + expressWord.use, 0, closed) !== inUse;
  }

  /** This thread is about to sleep until something comes. */
  begin({ peer, tag, lane, ended }: Omit<ExpressWait, "count">): void {
    const { words, base } = this;
    this.waits = (this.waits + 1) & 0x7fffffff || 1;
    words[base + expressWord.peer] = peer;
    words[base + expressWord.tag] = tag;
    words[base + expressWord.lane] = lane;
    words[base + expressWord.ended] = ended ? 1 : 0;
    Atomics.store(words, base + expressWord.waits, this.waits);
  }

  end(): void {
    Atomics.store(this.words, this.base + expressWord.waits, 0);
  }

  get waiting(): ExpressWait | undefined {
    const { words, base } = this;
    const count = Atomics.load(words, base + expressWord.waits);
    if (count === 0) return undefined;
    const wait = {
      count,
      peer: words[base + expressWord.peer]!,
      tag: words[base + expressWord.tag]!,
      lane: words[base + expressWord.lane]!,
      ended: words[base + expressWord.ended] === 1,
    };
    // Another wait may have begun while it was read.
    return Atomics.load(words, base + expressWord.waits) === count ? wait : undefined;
  }
}
