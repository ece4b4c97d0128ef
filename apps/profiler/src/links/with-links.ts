import type { LinkFile } from "@skein/collectives";
import type { HardwareFile } from "@skein/cost-model";

/** A hardware file with replaced links. */
export interface Relinked {
  readonly hardware: HardwareFile;
  /** Kind of link that was not measured and is unchanged. Undefined: both kinds were measured. */
  readonly unmeasured: "within" | "across" | undefined;
}

/**
 * Replace the links of a hardware file by measured links. A job has links within a host, across hosts, or both; links
 * that the job does not have stay as they are in the file. Contention stays too, because messages between two ranks at
 * a time do not show it. The growth of the network belongs to the links between hosts: it stays if these stay, and is
 * dropped if they are replaced.
 */
export const withLinks = (hardware: HardwareFile, links: LinkFile): Relinked => {
  const { within, across, reduceSecondsPerByte, transport, measuredAt, machine } = links;
  const unmeasured = within === undefined ? "within" : across === undefined ? "across" : undefined;
  const times = Object.fromEntries(
    Object.entries({ within, across }).flatMap(([name, fit]) =>
      fit === undefined
        ? []
        : [[name, { secondsPerMessage: fit.secondsPerMessage, secondsPerByte: fit.secondsPerByte }]],
    ),
  );
  const measured = `measured by skein-profile links on ${measuredAt.slice(0, 10)}, on ${machine} over ${transport}`;
  const source =
    unmeasured === undefined ? measured : `${measured}; those ${unmeasured} hosts as before (${hardware.links.source})`;
  const { growth, ...before } = hardware.links;
  const keptGrowth = across === undefined && growth !== undefined ? { growth } : {};
  return {
    hardware: { ...hardware, links: { ...before, ...keptGrowth, ...times, reduceSecondsPerByte, source } },
    unmeasured,
  };
};
