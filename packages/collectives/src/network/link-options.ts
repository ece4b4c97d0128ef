import type { Checksum } from "../wire/crc32c.ts";
import type { Flow } from "./flow.ts";
import type { LinkIdentity } from "./handshake.ts";

/** Link options of one rank. Defaults: `linkDefaults`. */
export interface LinkOptions extends Partial<Flow> {
  readonly rank: number;
  readonly worldSize: number;
  /** Hash of the job file. Ranks of another job are refused. */
  readonly job: string;
  /** Version of the program. Ranks of another version are refused. */
  readonly build: string;
  /**
   * Secret of the job. The secret is never sent: both ends of a link prove that they know the secret, the accepting end
   * first.
   */
  readonly secret: string;
  readonly host?: string;
  readonly port?: number;
  /** Whether unencrypted connections to other machines are allowed. */
  readonly insecure?: boolean;
  readonly lanes?: number;
  /** Number of sockets per direction over which data are distributed. */
  readonly socketsPerPair?: number;
  /**
   * Coverage of data frame checksums. `payload`: header and payload. `header`: only the header. `unless-direct`: only
   * the header, unless there is a proxy or tunnel between the two ends. Use `unless-direct` only for loopback, which
   * does not corrupt data. Default: `payload`, or over TLS `header`, because TLS protects the payload better.
   */
  readonly sums?: "payload" | "header" | "unless-direct";
  /** Checksum function. Default: `crc32cOf()`. A function over the world's memory avoids a copy. */
  readonly checksum?: Checksum;
  /**
   * Whether to open an additional connection for the rank's compute thread to each peer on this machine that also sets
   * this option (`LinkListener.expressSockets`).
   */
  readonly handsOver?: boolean;
  /** Time limit for the handshake of one socket. */
  readonly handshakeMilliseconds?: number;
  /** Maximum time that `connect` waits for all peers. */
  readonly connectMilliseconds?: number;
  /**
   * Called for each refused connection: unauthenticated connections, and peers that do not belong to this world. There
   * may be thousands of unauthenticated connections.
   */
  readonly onRefused?: (refusal: Refusal) => void;
}

/** A refused connection: address of the remote end, and the reason as an error. */
export interface Refusal {
  readonly remote: string;
  readonly error: Error;
}

/**
 * Default options of a link. `socketsPerPair` is 1, because a second socket did not reduce times, neither between two
 * processes of one machine nor between machines (docs/experiments.md).
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

/** Options of a listener, with all defaults filled in. */
export interface LinkSettings extends Omit<Required<LinkOptions>, "secret" | "onRefused"> {
  readonly identity: LinkIdentity;
  /** Key derived from the secret by `jobKey`. */
  readonly key: Uint8Array;
  readonly onRefused: (refusal: Refusal) => void;
}
