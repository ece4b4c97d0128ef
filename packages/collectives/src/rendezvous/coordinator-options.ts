import { ArgumentError } from "@skein/tensor-core";
import { requireSecure } from "../security/loopback.ts";
import { jobKey } from "../security/handshake.ts";
import { checkSecret } from "../security/secret.ts";
import type { TlsIdentity } from "../security/tls-identity.ts";
import { checkHeartbeat, defaultHeartbeat, type Heartbeat } from "../failure-detection/heartbeat.ts";
import type { World } from "./membership.ts";
import { defaultNoticeTimes, type NoticeTimes } from "./wait-notice.ts";

/** What happened at a coordinator, as one line for a log; it holds no secret. */
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

/** Where the coordinator listens, whom it lets in, and how long it waits. */
export interface RendezvousOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any that is free. */
  readonly port?: number;
  readonly worldSize: number;
  /** Hash of what all ranks must agree on. */
  readonly job: string;
  /** Build of Skein; the same on all processes unless `anyBuild`. */
  readonly build: string;
  readonly anyBuild?: boolean;
  /** What to do about another build, in words for people. Default: install the same one, or allow others. */
  readonly buildCure?: string;
  /** From `newSecret()`, the same for every process of the job. */
  readonly secret: string;
  /** Ranks of the process that hosts the coordinator, which are lost with it. Default: none, as a launcher has. */
  readonly ranks?: readonly number[];
  /**
   * Speak TLS, and let in only who proves its ranks by a certificate of the same authority. What is put in its files
   * later is used for later connections; who has a certificate that is revoked is cut off.
   */
  readonly security?: TlsIdentity;
  /** How often the files of `security` are looked at. Default 5 s. */
  readonly lookMilliseconds?: number;
  /** Allow to listen off loopback without `security`. */
  readonly insecure?: boolean;
  /** Default: `defaultJoinMilliseconds`. */
  readonly joinTimeoutMilliseconds?: number;
  /** How long a stranger has to prove itself. Default 5 s. */
  readonly handshakeTimeoutMilliseconds?: number;
  /** Kept by both sides. Default: `defaultHeartbeat`. */
  readonly heartbeat?: Heartbeat;
  /** When it says for whom it waits, as events of kind "waiting". Default: `defaultNoticeTimes`. */
  readonly notice?: NoticeTimes;
  readonly onEvent?: (event: RendezvousEvent) => void;
}

/** Options with every default filled in. */
export interface CheckedRendezvousOptions extends World {
  readonly host: string;
  readonly port: number;
  readonly job: string;
  /** From `jobKey`. */
  readonly key: Uint8Array;
  readonly ranks: readonly number[];
  readonly security: TlsIdentity | undefined;
  readonly lookMilliseconds: number | undefined;
  readonly joinTimeoutMilliseconds: number;
  readonly handshakeTimeoutMilliseconds: number;
  readonly heartbeat: Heartbeat;
  readonly notice: NoticeTimes;
  readonly onEvent: (event: RendezvousEvent) => void;
}

/** Ten minutes, in which a container's image of some gigabytes is pulled; as torchrun's rendezvous waits. */
export const defaultJoinMilliseconds = 600_000;

/** The most that Node's timers take. */
const longestMilliseconds: number = 2 ** 31 - 1;

/** @throws ArgumentError when `value` is no time that a timer takes. */
export const checkMilliseconds = (name: string, value: number): void => {
  if (!(value > 0 && value <= longestMilliseconds))
    throw new ArgumentError(
      `${name} cannot be ${value}; it is a number of milliseconds above 0 and up to ${longestMilliseconds}`,
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
    lookMilliseconds,
    insecure = false,
    joinTimeoutMilliseconds = defaultJoinMilliseconds,
    handshakeTimeoutMilliseconds = 5000,
    heartbeat = defaultHeartbeat,
    notice = defaultNoticeTimes,
    onEvent = () => {},
  } = options;
  if (!Number.isInteger(worldSize) || worldSize < 1)
    throw new ArgumentError(`a world of ${worldSize} ranks cannot be made; worldSize is a whole number from 1`);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new ArgumentError(`a coordinator cannot listen on port ${port}; use 1 to 65535, or 0 for any that is free`);
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
    lookMilliseconds,
    joinTimeoutMilliseconds,
    handshakeTimeoutMilliseconds,
    heartbeat,
    notice,
    onEvent,
  };
};
