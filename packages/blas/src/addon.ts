import type { Sgemm } from "@skein/cpu-kernels";

/** Which library it is: what a table was measured with. */
export interface LibraryIdentity {
  readonly family: string;
  readonly version: string;
  /** Which of its kernels it has chosen for this processor; empty where it does not tell. */
  readonly core: string;
}

/** What a library says of itself. */
export interface LibraryFacts extends LibraryIdentity {
  /** Whether several threads may multiply at once; where not, they take turns. */
  readonly concurrent: boolean;
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
export const libraryText = ({ family, version, core }: LibraryIdentity): string =>
  `${family} ${version}${core === "" ? "" : ` (${core})`}`;

/** What to say of a library that only one thread may call at a time. */
export const turnsText: string =
  "built without locks, so threads multiply one at a time; install one with them (Debian: libopenblas0-pthread)";
