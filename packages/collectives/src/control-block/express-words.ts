import type { ControlBlock } from "./control-block.ts";
import { expressWord } from "./layout.ts";

/** A wait of a rank's thread on an express connection. */
export interface ExpressWait {
  /** Sequence number of the wait; it differs between waits. */
  readonly count: number;
  readonly peer: number;
  readonly tag: number;
  readonly lane: number;
  /** Whether the peer has closed the connection. */
  readonly ended: boolean;
}

const inUse = 1;
const closed = 2;

/**
 * Shared state of the two threads of a rank about the express connections, which the rank's own thread reads and
 * writes. The companion opens and closes the connections, and checks the timeout of each wait.
 */
export class ExpressWords {
  private readonly words: Int32Array;
  private readonly base: number;
  private waits = 0;

  constructor(control: ControlBlock) {
    this.words = control.words;
    this.base = control.eventAt("message"); // First word of the rank.
  }

  /**
   * Begins to read and write.
   *
   * @returns false after the connections were closed, because their descriptors may belong to other files.
   */
  take(): boolean {
    return Atomics.compareExchange(this.words, this.base + expressWord.use, 0, inUse) === 0;
  }

  leave(): void {
    Atomics.store(this.words, this.base + expressWord.use, 0);
  }

  /**
   * Closes the connections for reading and writing.
   *
   * @returns false while the other thread reads or writes.
   */
  tryClose(): boolean {
    return Atomics.compareExchange(this.words, this.base + expressWord.use, 0, closed) !== inUse;
  }

  /** Publishes that this thread is about to sleep until a message comes. */
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
    // Another wait may have begun during the read.
    return Atomics.load(words, base + expressWord.waits) === count ? wait : undefined;
  }
}
