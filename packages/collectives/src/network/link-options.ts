import type { Checksum } from "../wire/crc32c.ts";
import type { Flow } from "./flow.ts";
import type { LinkIdentity } from "./handshake.ts";

/** Options of one rank for its links. Absent fields have the defaults of `linkDefaults`. */
export interface LinkOptions extends Partial<Flow> {
  readonly rank: number;
  readonly worldSize: number;
  /** Hash of the job file. Ranks of another job are refused. */
  readonly job: string;
  /** Version of the program. Ranks of another version are refused. */
  readonly build: string;
  /** Secret of the job. It is never sent: both ends of a link prove that they know it, the accepting side first. */
  readonly secret: string;
  readonly host?: string;
  readonly port?: number;
  /** Whether unencrypted connections beyond this machine are allowed. */
  readonly insecure?: boolean;
  readonly lanes?: number;
  /** Number of sockets per direction over which data are spread. */
  readonly socketsPerPair?: number;
  /**
   * Coverage of the checksums of data frames. Default: `payload`; over TLS `header`, because TLS protects the payload
   * better. `unless-direct`: the payload only if there is a proxy or tunnel between the two ends; only for loopback,
   * which has no cable.
   */
  readonly sums?: "payload" | "header" | "unless-direct";
  /** Checksum function. Default: `crc32cOf()`. A function over the world's memory saves a copy. */
  readonly checksum?: Checksum;
  /**
   * Whether to open one more connection to each peer of this machine that does the same, for the rank's own thread
   * (`LinkListener.expressSockets`).
   */
  readonly handsOver?: boolean;
  /** Time limit of a socket's handshake. */
  readonly handshakeMilliseconds?: number;
  /** Time that `connect` waits for all peers. */
  readonly connectMilliseconds?: number;
  /**
   * Called for each refused connection: unauthenticated ones, and peers that do not belong to this world. There may be
   * thousands of unauthenticated ones.
   */
  readonly onRefused?: (refusal: Refusal) => void;
}

/** A refused connection. */
export interface Refusal {
  readonly remote: string;
  readonly error: Error;
}

/**
 * `socketsPerPair`: a second socket gained nothing, neither between two processes of one machine nor between machines
 * (docs/experiments.md).
 */
export const linkDefaults = {
  host: "127.0.0.1",
  port: 0,
  lanes: 4,
  socketsPerPair: 1,
  handsOver: false,
  handshakeMilliseconds: 5000,
  connectMilliseconds: 60_000,
} as const;

/** Options of a listener with all defaults. */
export interface LinkSettings extends Omit<Required<LinkOptions>, "secret" | "onRefused"> {
  readonly identity: LinkIdentity;
  /** Key from `jobKey`. */
  readonly key: Uint8Array;
  readonly onRefused: (refusal: Refusal) => void;
}
