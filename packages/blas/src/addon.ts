import type { Sgemm } from "@skein/cpu-kernels";

/** Identity of a BLAS library, as recorded in a table of measured shapes. */
export interface LibraryIdentity {
  readonly family: string;
  readonly version: string;
  /**
   * Kernel set that the library has selected for this processor, such as "Cooperlake". Empty if the library does not
   * report its kernel set.
   */
  readonly core: string;
}

/** Properties that a BLAS library reports about itself. */
export interface LibraryFacts extends LibraryIdentity {
  /** Whether several threads can multiply concurrently. If false, threads multiply one at a time. */
  readonly concurrent: boolean;
}

/**
 * Interface of the native module in native/addon.cc. Both functions throw an Error with a one-line message if the
 * library cannot be used.
 */
export interface BlasAddon {
  describe(library: string): LibraryFacts;
  /**
   * Returns the matrix multiplication of a library, bound to a memory.
   *
   * @param memory View that starts at the first byte of the memory. The memory must not move when it grows.
   */
  open(library: string, memory: Uint8Array): Sgemm;
}

/**
 * Returns the family, version and kernel set of a library as text, for messages and for the comparison between ranks.
 */
export const libraryText = ({ family, version, core }: LibraryIdentity): string =>
  `${family} ${version}${core === "" ? "" : ` (${core})`}`;

/** Advice text for users whose BLAS library allows only one thread to multiply at a time. */
export const noLocksAdvice: string =
  "built without locks, so threads multiply one at a time; install one with them (Debian: libopenblas0-pthread)";
