import type { Checksum } from "../wire/crc32c.ts";
import type { Flow } from "./flow.ts";
import type { LinkIdentity } from "./handshake.ts";

/** One rank's part of making links. What is not said has the default of `linkDefaults`. */
export interface LinkOptions extends Partial<Flow> {
  readonly rank: number;
  readonly worldSize: number;
  /** Hash of the job file: ranks of another job are refused. */
  readonly job: string;
  /** Version of the program: ranks of another are refused. */
  readonly build: string;
  /** Of the job. It never travels: both ends of a link prove that they know it, who accepts first. */
  readonly secret: string;
  readonly host?: string;
  readonly port?: number;
  /** Let bytes travel in the clear beyond this machine. */
  readonly insecure?: boolean;
  readonly lanes?: number;
  /** Sockets that data of one direction are spread over. */
  readonly socketsPerPair?: number;
  /**
   * What the checksums of data cover. Default: `payload`, over TLS `header`, since TLS protects the payload better.
   * `unless-direct`: the payload too where something stands between the two ends, such as a proxy or a tunnel; only for
   * loopback, which has no cable.
   */
  readonly sums?: "payload" | "header" | "unless-direct";
  /** Makes the checksums. Default: `crc32cOf()`; one over the world's memory saves a copy. */
  readonly checksum?: Checksum;
  /**
   * Make one more connection to each peer of this machine that does the same, for the rank's own thread
   * (`LinkListener.handed`).
   */
  readonly handsOver?: boolean;
  /** How long a socket may take to prove who it is. */
  readonly handshakeMilliseconds?: number;
  /** How long `connect` waits for all peers. */
  readonly connectMilliseconds?: number;
  /**
   * Told of each that was sent away: strangers, and peers that do not belong to this world. Strangers may come by the
   * thousand.
   */
  readonly onRefused?: (refusal: Refusal) => void;
}

/** Somebody who was sent away. */
export interface Refusal {
  readonly remote: string;
  readonly error: Error;
}

/**
 * `socketsPerPair`: a second socket gained nothing between two processes of one machine, nor of two
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

/** The options of a listener, complete. */
export interface LinkSettings extends Omit<Required<LinkOptions>, "secret" | "onRefused"> {
  readonly identity: LinkIdentity;
  /** From `jobKey`. */
  readonly key: Uint8Array;
  readonly onRefused: (refusal: Refusal) => void;
}
