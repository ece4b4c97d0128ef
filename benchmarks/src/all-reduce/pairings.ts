import { names } from "./names.ts";

/** Names of the two implementations that a row compares. */
export interface Pairing {
  readonly ours: string;
  readonly peer: string;
  /**
   * Returns the required minimum of the row's ratio for vectors of `bytes` bytes. Absent or undefined: no requirement.
   */
  readonly target?: (bytes: number) => number | undefined;
  /** How the two implementations differ in kind, as text for the row. Absent: both are of the same kind. */
  readonly unlike?: string;
}

const large = (ratio: number) => (bytes: number) => (bytes >= 2 ** 20 ? ratio : undefined);
const least = (small: number, ratio?: number) => (bytes: number) =>
  bytes === 2 ** 12 ? small : ratio === undefined ? undefined : large(ratio)(bytes);

/**
 * Pairs of implementations that rows compare, with or without a required minimum ratio. A ratio of one half allows
 * twice the peer's latency.
 */
export const pairings: readonly Pairing[] = [
  {
    ours: names.threads,
    peer: names.openMpi,
    target: least(1, 2),
    unlike: "another kind: threads read each other's memory, processes copy",
  },
  { ours: names.tcp, peer: names.gloo, target: large(1.3) },
  { ours: names.tcp, peer: names.pytorch, unlike: "the peer's time holds Python's dispatch" },
  { ours: names.tcp, peer: names.openMpiTcp, target: least(0.5, 1) },
  { ours: names.tls, peer: names.gloo, unlike: "ours encrypts, the peer does not" },
  {
    ours: names.tls,
    peer: names.tcp,
    target: (bytes) => (bytes >= 2 ** 24 ? 0.8 : undefined),
    unlike: "what encryption costs: both are ours",
  },
  { ours: names.mpi, peer: names.openMpiCalls, target: least(0.8, 0.9) },
  { ours: names.mpi, peer: names.openMpi },
  { ours: names.mpiCalls, peer: names.openMpiCalls },
  { ours: names.mpiSchedules, peer: names.openMpi },
  { ours: names.mpiCallSchedules, peer: names.openMpi },
];
