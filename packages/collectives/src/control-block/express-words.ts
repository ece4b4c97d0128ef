import type { ControlBlock } from "./control-block.ts";
import { expressWord } from "./layout.ts";

/**
 * A wait of a rank's compute thread for a peer's message on an express connection, a socket that the compute thread
 * itself reads and writes.
 */
export interface ExpressWait {
  /** Sequence number of the wait, different for each wait. */
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
 * State of the express connections, shared by the two threads of a rank. The compute thread reads and writes the
 * connections. The companion opens and closes the connections, and checks the timeout of each wait.
 */
export class ExpressWords {
  private readonly words: Int32Array;
  private readonly base: number;
  private waits = 0;

  constructor(control: ControlBlock) {
    this.words = control.words;
    this.base = control.eventAt("message"); // Index of the first event word of the rank.
  }

  /**
   * Marks the connections as in use. Call this method before reading or writing.
   *
   * @returns false after the connections were closed, because their descriptors may now belong to other files.
   */
  take(): boolean {
    return Atomics.compareExchange(this.words, this.base + expressWord.use, 0, inUse) === 0;
  }

  leave(): void {
    Atomics.store(this.words, this.base + expressWord.use, 0);
  }

  /**
   * Marks the connections as closed, so that no thread reads or writes them.
   *
   * @returns false while the other thread reads or writes.
   */
  tryClose(): boolean {
    return Atomics.compareExchange(this.words, this.base + expressWord.use, 0, closed) !== inUse;
  }

  /** Publishes a wait of this thread, which is about to sleep until a message of `peer` arrives. */
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
    // The thread may have begun another wait while these words were read.
    return Atomics.load(words, base + expressWord.waits) === count ? wait : undefined;
  }
}
