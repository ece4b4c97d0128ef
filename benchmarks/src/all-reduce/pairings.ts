import { names } from "./contestants.ts";

/** Which two are set side by side. */
export interface Pairing {
  readonly ours: string;
  readonly peer: string;
  /** The least ratio that was asked for at this size. */
  readonly target?: (bytes: number) => number | undefined;
}

const large = (ratio: number) => (bytes: number) => (bytes >= 2 ** 20 ? ratio : undefined);

/** The table of what was asked for, and what else there is to compare. Latency within twice a peer's is a ratio of one half. */
export const pairings: readonly Pairing[] = [
  { ours: names.threads, peer: names.openMpi, target: (bytes) => (bytes === 2 ** 12 ? 0.5 : large(2)(bytes)) },
  { ours: names.tcp, peer: names.gloo, target: large(1.3) },
  { ours: names.tcp, peer: names.openMpiTcp, target: large(1) },
  { ours: names.tls, peer: names.gloo },
  { ours: names.mpi, peer: names.openMpiCalls, target: large(0.9) },
  { ours: names.mpi, peer: names.openMpi },
  { ours: names.mpiCalls, peer: names.openMpiCalls },
  { ours: names.mpiSchedules, peer: names.openMpi },
  { ours: names.mpiCallSchedules, peer: names.openMpi },
];
