import type { BindingSource } from "../kernel.ts";

/** Scratch blocks of a plan under construction. */
export class ScratchBlocks {
  /** Bytes of each block: the plan's `scratch`. */
  readonly bytes: number[] = [];

  /** Allocate a block of `words` four-byte words. */
  take(words: number): BindingSource {
    return { scratch: this.bytes.push(4 * Math.max(1, words)) - 1 };
  }
}
