import type { BindingSource } from "../kernel.ts";

/** Scratch blocks of a plan while it is made. */
export class ScratchBlocks {
  /** Bytes of each block: the plan's `scratch`. */
  readonly bytes: number[] = [];

  /** A new block of so many words of four bytes. */
  take(words: number): BindingSource {
    return { scratch: this.bytes.push(4 * Math.max(1, words)) - 1 };
  }
}
