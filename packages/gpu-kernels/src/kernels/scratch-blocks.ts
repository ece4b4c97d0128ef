import type { BindingSource } from "../kernel.ts";

/** Scratch blocks of a kernel plan under construction. */
export class ScratchBlocks {
  /** Size in bytes of each block, for the field `scratch` of the plan. */
  readonly bytes: number[] = [];

  /** Allocates a block of `words` four-byte words. */
  take(words: number): BindingSource {
    return { scratch: this.bytes.push(4 * Math.max(1, words)) - 1 };
  }
}
