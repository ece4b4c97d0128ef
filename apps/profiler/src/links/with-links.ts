import type { LinkFile } from "@skein/collectives";
import type { HardwareFile } from "@skein/cost-model/hardware";

/** Hardware file after measured links have replaced its links. */
export interface Relinked {
  readonly hardware: HardwareFile;
  /**
   * Type of link, within or across hosts, that was not measured and is therefore unchanged. Undefined: both types were
   * measured.
   */
  readonly unmeasured: "within" | "across" | undefined;
}

/**
 * Replaces the links of a hardware file by measured links. Links that were not measured, within or across hosts, are
 * not changed. Contention is not changed either, because the measurement uses only two ranks at a time. The network
 * growth describes the links across hosts, and is removed if these links are replaced.
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
