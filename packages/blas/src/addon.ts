import type { Sgemm } from "@skein/cpu-kernels";

/** Identity of a library, as a table of measured shapes records it. */
export interface LibraryIdentity {
  readonly family: string;
  readonly version: string;
  /** Kernels that the library has chosen for this processor. Empty if the library does not report them. */
  readonly core: string;
}

/** Facts that a library reports about itself. */
export interface LibraryFacts extends LibraryIdentity {
  /** Whether several threads may multiply at once. If not, threads take turns. */
  readonly concurrent: boolean;
}

/**
 * The native module, as native/addon.cc exports it. Both functions throw an Error with a one-line message if the
 * library cannot be used.
 */
export interface BlasAddon {
  describe(library: string): LibraryFacts;
  /** @param memory view that starts at the memory's first byte; the memory must not move when it grows. */
  open(library: string, memory: Uint8Array): Sgemm;
}

/** Text that identifies a library, for people and for the comparison between ranks. */
export const libraryText = ({ family, version, core }: LibraryIdentity): string =>
  `${family} ${version}${core === "" ? "" : ` (${core})`}`;

/** Explains in output that only one thread at a time may call a library. */
export const noLocksAdvice: string =
  "built without locks, so threads multiply one at a time; install one with them (Debian: libopenblas0-pthread)";
