import { fitLink, formatLinkFile } from "@skein/collectives";
import type { JobFile } from "../studies/job-file.ts";

/** A network to emulate, with the bandwidth and latency of each rank's links, in each direction. */
export interface EmulatedNetwork {
  readonly name: string;
  readonly title: string;
  readonly bytesPerSecond: number;
  readonly latencySeconds: number;
  /** Number of measured steps after warm-up. Fewer if a step takes seconds, because noise is then small. */
  readonly countedSteps: number;
  /**
   * Rank counts to run. With two ranks, each rank has a separate core for communication; with four or eight ranks,
   * ranks share cores.
   */
  readonly ranks: readonly number[];
  /** Rank counts that claims depend on, limited by the cores of the available machines. */
  readonly coreRanks: readonly number[];
  /** Expected seconds of a run with up to four ranks on four cores, used only to estimate how long a study takes. */
  readonly expectedSeconds: number;
}

export const networks: readonly EmulatedNetwork[] = [
  {
    name: "10-gbps",
    title: "10 Gbit/s, 50 µs",
    bytesPerSecond: 1.25e9,
    latencySeconds: 50e-6,
    countedSteps: 12,
    ranks: [4, 8],
    coreRanks: [],
    expectedSeconds: 6,
  },
  {
    name: "1-gbps",
    title: "1 Gbit/s, 50 µs",
    bytesPerSecond: 125e6,
    latencySeconds: 50e-6,
    countedSteps: 12,
    ranks: [2, 4, 8],
    coreRanks: [2, 4],
    expectedSeconds: 6,
  },
  {
    name: "100-mbps",
    title: "100 Mbit/s, 20 ms",
    bytesPerSecond: 12.5e6,
    latencySeconds: 0.02,
    countedSteps: 8,
    ranks: [4, 8],
    coreRanks: [4],
    expectedSeconds: 12,
  },
];

/** Latency of a loopback message in addition to the emulated latency (docs/network-emulation.md). */
const ownLatencySeconds = 150e-6;
/** Seconds per byte of adding received values, at 29 GB/s as `skein-train links` measures on this kind of machine. */
const reduceSecondsPerByte = 1 / 29e9;

/**
 * Returns job options for a network. Lossless coding is off, so that the bytes on the network depend only on the
 * method.
 */
export const networkJob = ({ bytesPerSecond, latencySeconds }: EmulatedNetwork): JobFile => ({
  transport: "tcp",
  sumOrder: "any",
  network: { emulate: { bytesPerSecond, latencySeconds }, links: "links.json", codec: "never", timeoutSeconds: 120 },
});

/**
 * Returns the text of a link file, from which a run chooses its all-reduce algorithms. The values are those that a
 * measurement of the emulated links would give, but identical in every run.
 */
export const linkFileOf = ({ title, bytesPerSecond, latencySeconds }: EmulatedNetwork, ranks: number): string => {
  const messageBytes = [64, 65_536, 4_194_304];
  const samples = messageBytes.map((bytes) => ({
    bytes,
    seconds: ownLatencySeconds + latencySeconds + bytes / bytesPerSecond,
  }));
  return formatLinkFile({
    format: "skein-links",
    version: 1,
    measuredAt: "2026-01-01T00:00:00.000Z",
    machine: `emulated: ${title}`,
    transport: "tcp",
    messageBytes,
    hosts: [Array.from({ length: ranks }, (_, rank) => rank)],
    within: fitLink(samples),
    pairs: [],
    reduceSecondsPerByte,
  });
};
