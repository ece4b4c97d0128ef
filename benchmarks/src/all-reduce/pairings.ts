import { names } from "./names.ts";

/** Which two are set side by side. */
export interface Pairing {
  readonly ours: string;
  readonly peer: string;
  /** The least ratio that was asked for at this size. */
  readonly target?: (bytes: number) => number | undefined;
  /** What the two do not have alike, for the row. */
  readonly unlike?: string;
}

const large = (ratio: number) => (bytes: number) => (bytes >= 2 ** 20 ? ratio : undefined);
const companion = "ours through a companion thread";

/**
 * The table of what was asked for, and what else there is to compare. Latency within twice a peer's is a ratio of one
 * half.
 */
export const pairings: readonly Pairing[] = [
  {
    ours: names.threads,
    peer: names.openMpi,
    target: (bytes) => (bytes === 2 ** 12 ? 0.5 : large(2)(bytes)),
    unlike: "another kind: threads read each other's memory, processes copy",
  },
  { ours: names.tcp, peer: names.gloo, target: large(1.3) },
  { ours: names.tcp, peer: names.pytorch, unlike: "the peer's time holds Python's dispatch" },
  { ours: names.tcp, peer: names.openMpiTcp, target: large(1) },
  { ours: names.tls, peer: names.gloo, unlike: "ours encrypts, the peer does not" },
  { ours: names.mpi, peer: names.openMpiCalls, target: large(0.9), unlike: companion },
  { ours: names.mpi, peer: names.openMpi, unlike: companion },
  { ours: names.mpiCalls, peer: names.openMpiCalls },
  { ours: names.mpiSchedules, peer: names.openMpi, unlike: companion },
  { ours: names.mpiCallSchedules, peer: names.openMpi },
];
