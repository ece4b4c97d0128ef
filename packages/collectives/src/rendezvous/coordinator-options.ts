import { ArgumentError } from "@skein/tensor-core";
import { requireSecure } from "../security/loopback.ts";
import { jobKey } from "../security/handshake.ts";
import { checkSecret } from "../security/secret.ts";
import type { TlsIdentity } from "../security/tls-identity.ts";
import { checkHeartbeat, defaultHeartbeat, type Heartbeat } from "../failure-detection/heartbeat.ts";
import type { World } from "./membership.ts";
import { defaultNoticeTimes, type NoticeTimes } from "./wait-notice.ts";

/** An event at a coordinator, described by one line for a log. The line contains no secret. */
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
  /** Port to listen on. Default: 0, any free port. */
  readonly port?: number;
  readonly worldSize: number;
  /** Hash of the settings that all ranks must share. */
  readonly job: string;
  /** Build of Skein; equal on all processes unless `anyBuild` is true. */
  readonly build: string;
  readonly anyBuild?: boolean;
  /** Advice to the user if a process has another build. Default: install the same build, or allow other builds. */
  readonly buildCure?: string;
  /** Secret of the job from `randomSecret()`, equal in all processes of the job. */
  readonly secret: string;
  /**
   * Ranks of the process that hosts the coordinator. These ranks are lost together with the coordinator. Default: none,
   * as in a launcher.
   */
  readonly ranks?: readonly number[];
  /**
   * TLS identity. Only processes that prove their ranks by a certificate of the same authority are admitted. Later
   * connections use the current contents of the identity's files. A process whose certificate is revoked is cut off.
   * Absent: plain TCP.
   */
  readonly security?: TlsIdentity;
  /** Interval at which the files of `security` are checked for changes. Default: 5 s. */
  readonly reloadMilliseconds?: number;
  /** Whether to allow listening on a non-loopback address without `security`. Default: false. */
  readonly insecure?: boolean;
  /** Time limit for all ranks to join. Default: `defaultJoinMilliseconds`. */
  readonly joinTimeoutMilliseconds?: number;
  /** Time limit of a handshake. Default: 5 s. */
  readonly handshakeTimeoutMilliseconds?: number;
  /** Heartbeat of the coordinator and of all processes that join. Default: `defaultHeartbeat`. */
  readonly heartbeat?: Heartbeat;
  /** Times at which the missing ranks are reported, as events of kind "waiting". Default: `defaultNoticeTimes`. */
  readonly notice?: NoticeTimes;
  readonly onEvent?: (event: RendezvousEvent) => void;
}

/** Options with all defaults filled in. */
export interface CheckedRendezvousOptions extends World {
  readonly host: string;
  readonly port: number;
  readonly job: string;
  /** Key derived from the secret by `jobKey`. */
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

/**
 * Default of the time limit for joining: ten minutes, enough to pull a container image of several gigabytes. torchrun's
 * rendezvous has the same limit.
 */
export const defaultJoinMilliseconds = 600_000;

/** Maximum delay of Node's timers. */
const longestMilliseconds: number = 2 ** 31 - 1;

/**
 * Checks that a duration is a valid delay of a timer.
 *
 * @throws ArgumentError if `value` is not above 0, or exceeds the maximum delay of Node's timers.
 */
export const checkMilliseconds = (name: string, value: number): void => {
  if (!(value > 0 && value <= longestMilliseconds))
    throw new ArgumentError(
      `${name} cannot be ${value}; use a number of milliseconds above 0 and up to ${longestMilliseconds}`,
    );
};

/**
 * Checks the options of a coordinator, and fills in defaults.
 *
 * @throws ArgumentError or InsecureError.
 */
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
