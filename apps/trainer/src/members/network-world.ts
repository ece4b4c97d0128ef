import { ConfigError } from "@skein/cli/node";
import { linkCosts, type LinkFile, type Preference } from "@skein/collectives";
import {
  createProcessWorld,
  parseLinkFile,
  readTextFile,
  readTlsIdentity,
  type TlsIdentity,
} from "@skein/collectives/node";
import type { Job } from "@skein/job/node";
import { rankFiles } from "@skein/launch/node";
import { worldOf } from "./job-world.ts";
import type { OpenMemberWorld } from "./member-world.ts";
import { patienceOf } from "./patience.ts";

/** Maximum size of a link file in bytes: 200 bytes for each pair of 800 ranks. */
const maxLinkBytes = 64 * 2 ** 20;

const readLinks = (path: string): string => {
  try {
    return readTextFile(path, maxLinkBytes).text;
  } catch (error) {
    throw new ConfigError([
      `network.links: ${path} cannot be read (${(error as Error).message}); measure the links with skein-train links, or remove the option`,
    ]);
  }
};

/** Reads the link file of a job; undefined if the job names no file. @throws ConfigError, LinkFileError. */
export const measuredLinksOf = ({ network: { links } }: Pick<Job, "network">): LinkFile | undefined =>
  links === undefined ? undefined : parseLinkFile(readLinks(links), links);

/** Returns the job settings from which collective algorithms are chosen. */
export const preferenceOf = (job: Pick<Job, "sumOrder" | "network">): Omit<Preference, "hosts"> => {
  const links = measuredLinksOf(job);
  return { order: job.sumOrder, ...(links !== undefined && { link: linkCosts(links) }) };
};

/** Reads the TLS identity of the process that runs `ranks`, from the files of `skein-train certs init`. */
export const memberIdentity = (certificates: string, ranks: readonly number[]): TlsIdentity =>
  readTlsIdentity(rankFiles(certificates, ranks[0]!));

export interface NetworkWorldOptions {
  readonly secret: string;
  /** TLS identity of this process. Absent: connections use TCP without TLS. */
  readonly identity: TlsIdentity | undefined;
  /** Whether all processes of the run are on this machine. */
  readonly onOneMachine: boolean;
}

/**
 * Returns a function that prepares the communication of a process with the other processes of a run over TCP or TLS.
 */
export const openNetworkWorld =
  ({ secret, identity, onOneMachine }: NetworkWorldOptions): OpenMemberWorld =>
  ({ job, ranks, memory, kernels, build, onNote }) => {
    const { listen, insecure, timeoutSeconds, socketsPerPair, checksum, codec, emulate } = job.network;
    const { heartbeat } = patienceOf(job);
    return createProcessWorld({
      ...worldOf(job),
      heartbeat,
      ranks,
      memory,
      kernels,
      secret,
      onNote,
      ...(identity !== undefined && { tls: identity }),
      listen: listen ?? (onOneMachine ? "127.0.0.1" : "0.0.0.0"),
      insecure,
      links: { ...(checksum !== undefined && { checksum }), ...(socketsPerPair !== undefined && { socketsPerPair }) },
      codec,
      ...(emulate && { emulate }),
      timeoutMilliseconds: timeoutSeconds * 1000,
      preference: preferenceOf(job),
      facts: { "build of the kernels": build },
    });
  };
