import type { LinkFile } from "@skein/collectives";
import type { HardwareFile } from "@skein/cost-model";

/** What becomes of a hardware file. */
export interface Relinked {
  readonly hardware: HardwareFile;
  /** Links that were not measured, and stay as they were. */
  readonly kept: "within" | "across" | undefined;
}

/**
 * Put measured links in place of those of a hardware file. A job has links within a host, across hosts, or both; what
 * it has not stays as the file has it, and so does contention, which messages between two ranks at a time cannot tell.
 * The growth of the network is that of the links between hosts, and goes with them.
 */
export const withLinks = (hardware: HardwareFile, links: LinkFile): Relinked => {
  const { within, across, reduceSecondsPerByte, transport, measuredAt, machine } = links;
  const kept = within === undefined ? "within" : across === undefined ? "across" : undefined;
  const times = Object.fromEntries(
    Object.entries({ within, across }).flatMap(([name, fit]) =>
      fit === undefined
        ? []
        : [[name, { secondsPerMessage: fit.secondsPerMessage, secondsPerByte: fit.secondsPerByte }]],
    ),
  );
  const measured = `measured by skein-profile links on ${measuredAt.slice(0, 10)}, on ${machine} over ${transport}`;
  const source =
    kept === undefined ? measured : `${measured}; those ${kept} hosts as before (${hardware.links.source})`;
  const { growth, ...before } = hardware.links;
  const keptGrowth = across === undefined && growth !== undefined ? { growth } : {};
  return {
    hardware: { ...hardware, links: { ...before, ...keptGrowth, ...times, reduceSecondsPerByte, source } },
    kept,
  };
};
