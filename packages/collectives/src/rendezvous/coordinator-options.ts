import { ArgumentError } from "@skein/tensor-core";
import { requireSecure } from "../security/loopback.ts";
import { jobKey } from "../security/handshake.ts";
import { checkSecret } from "../security/secret.ts";
import type { TlsIdentity } from "../security/tls-identity.ts";
import { checkHeartbeat, defaultHeartbeat, type Heartbeat } from "../failure-detection/heartbeat.ts";
import type { World } from "./membership.ts";
import { defaultNoticeTimes, type NoticeTimes } from "./wait-notice.ts";

/** An event at a coordinator, as one line for a log. It contains no secret. */
export interface RendezvousEvent {
  readonly kind:
    | "waiting"
    | "silent"
    | "joined"
    | "refused"
    | "dropped"
    | "left"
    | "complete"
    | "lost"
    | "certificates";
  readonly message: string;
}

/** Address, admission rules and time limits of a coordinator. */
export interface RendezvousOptions {
  /** Address to listen on. Default: 127.0.0.1. */
  readonly host?: string;
  /** Default: 0, any free port. */
  readonly port?: number;
  readonly worldSize: number;
  /** Hash of the settings that all ranks must share. */
  readonly job: string;
  /** Build of Skein; equal on all processes unless `anyBuild` is true. */
  readonly build: string;
  readonly anyBuild?: boolean;
  /** Advice to people about another build. Default: install the same one, or allow others. */
  readonly buildCure?: string;
  /** Secret of the job from `newSecret()`, equal in all its processes. */
  readonly secret: string;
  /** Ranks of the process that hosts the coordinator, which are lost with it. Default: none, as in a launcher. */
  readonly ranks?: readonly number[];
  /**
   * TLS identity. Only processes that prove their ranks by a certificate of the same authority are admitted. Later
   * contents of the identity's files are used for later connections; a process whose certificate is revoked is cut off.
   * Absent: plain TCP.
   */
  readonly security?: TlsIdentity;
  /** Interval at which the files of `security` are checked. Default: 5 s. */
  readonly reloadMilliseconds?: number;
  /** Whether to allow listening beyond loopback without `security`. Default: false. */
  readonly insecure?: boolean;
  /** Time until all ranks must have joined. Default: `defaultJoinMilliseconds`. */
  readonly joinTimeoutMilliseconds?: number;
  /** Time limit of a handshake. Default: 5 s. */
  readonly handshakeTimeoutMilliseconds?: number;
  /** Heartbeat of both sides. Default: `defaultHeartbeat`. */
  readonly heartbeat?: Heartbeat;
  /** When to report the missing ranks, as events of kind "waiting". Default: `defaultNoticeTimes`. */
  readonly notice?: NoticeTimes;
  readonly onEvent?: (event: RendezvousEvent) => void;
}

/** Options with all defaults. */
export interface CheckedRendezvousOptions extends World {
  readonly host: string;
  readonly port: number;
  readonly job: string;
  /** Key from `jobKey`. */
  readonly key: Uint8Array;
  readonly ranks: readonly number[];
  readonly security: TlsIdentity | undefined;
  readonly reloadMilliseconds: number | undefined;
  readonly joinTimeoutMilliseconds: number;
  readonly handshakeTimeoutMilliseconds: number;
  readonly heartbeat: Heartbeat;
  readonly notice: NoticeTimes;
  readonly onEvent: (event: RendezvousEvent) => void;
}

/** Ten minutes, enough to pull a container image of some gigabytes; torchrun's rendezvous waits as long. */
export const defaultJoinMilliseconds = 600_000;

/** Maximum delay of Node's timers. */
const longestMilliseconds: number = 2 ** 31 - 1;

/**
 * Checks a duration.
 *
 * @throws ArgumentError if a timer cannot wait for `value`.
 */
export const checkMilliseconds = (name: string, value: number): void => {
  if (!(value > 0 && value <= longestMilliseconds))
    throw new ArgumentError(
      `${name} cannot be ${value}; use a number of milliseconds above 0 and up to ${longestMilliseconds}`,
    );
};

/** @throws ArgumentError or InsecureError. */
export const checkRendezvousOptions = (options: RendezvousOptions): CheckedRendezvousOptions => {
  const {
    host = "127.0.0.1",
    port = 0,
    worldSize,
    job,
    build,
    anyBuild = false,
    buildCure,
    secret,
    ranks = [],
    security,
    reloadMilliseconds,
    insecure = false,
    joinTimeoutMilliseconds = defaultJoinMilliseconds,
    handshakeTimeoutMilliseconds = 5000,
    heartbeat = defaultHeartbeat,
    notice = defaultNoticeTimes,
    onEvent = () => {},
  } = options;
  if (!Number.isInteger(worldSize) || worldSize < 1)
    throw new ArgumentError(`worldSize ${worldSize} is not a positive integer; pass the number of ranks, 1 or more`);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new ArgumentError(`a coordinator cannot listen on port ${port}; use 1 to 65535, or 0 for any free port`);
  checkMilliseconds("joinTimeoutMilliseconds", joinTimeoutMilliseconds);
  checkMilliseconds("handshakeTimeoutMilliseconds", handshakeTimeoutMilliseconds);
  checkHeartbeat(heartbeat);
  checkSecret(secret);
  requireSecure("the coordinator would listen", host, { encrypted: security !== undefined, insecure });
  return {
    host,
    port,
    worldSize,
    job,
    build: anyBuild ? undefined : build,
    buildCure,
    key: jobKey(secret, job),
    ranks,
    security,
    reloadMilliseconds,
    joinTimeoutMilliseconds,
    handshakeTimeoutMilliseconds,
    heartbeat,
    notice,
    onEvent,
  };
};
