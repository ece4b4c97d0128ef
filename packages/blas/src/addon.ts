import type { Sgemm } from "@skein/cpu-kernels";

/** What a library says of itself. */
export interface LibraryFacts {
  readonly family: string;
  readonly version: string;
  /** Which of its kernels it has chosen for this processor; empty where it does not tell. */
  readonly core: string;
}

/**
 * The native module, as native/addon.cc exports it. Both functions throw an Error with one line where the library is
 * not to be used.
 */
export interface BlasAddon {
  describe(library: string): LibraryFacts;
  /** @param memory from its first byte; one that stays where it is when it grows. */
  open(library: string, memory: Uint8Array): Sgemm;
}

/** For people, and for what ranks compare. */
export const libraryText = ({ family, version, core }: LibraryFacts): string =>
  `${family} ${version}${core === "" ? "" : ` (${core})`}`;
