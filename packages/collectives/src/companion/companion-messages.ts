import type { ErrorKind } from "@skein/tensor-core";
import type { LossKind } from "../errors.ts";
import type { EmulatedDirection } from "../network/emulated-links.ts";
import type { LinkHeartbeat } from "../failure-detection/heartbeat.ts";
import type { RankAddress, RosterEntry } from "../rendezvous/roster.ts";
import type { TlsIdentity } from "../security/tls-identity.ts";
import type { ExpressEnd, Preference, WorldConnection } from "../control-block/world-connection.ts";

/** Start parameters of a companion thread in a world of several processes. */
export interface CompanionInput {
  readonly connection: WorldConnection;
  /** Hash of the job settings, which must be equal on all ranks. */
  readonly job: string;
  /** Version of the program, which must be equal on all ranks. */
  readonly build: string;
  /** Secret of the job. Each rank proves to every other rank that it knows the secret. */
  readonly secret: string;
  /**
   * TLS identity of the rank. If the files of the identity are renewed, later connections use the new contents. Absent:
   * plain TCP.
   */
  readonly tls?: TlsIdentity;
  /** Address to listen on. Default: 127.0.0.1. */
  readonly listen?: string;
  /** Whether unencrypted connections to other machines are allowed. Default: false. */
  readonly insecure?: boolean;
  /**
   * Interval of heartbeats on each link, and the silence after which a peer counts as lost. Default: see
   * `createNetworkWorld`.
   */
  readonly heartbeat?: LinkHeartbeat;
  readonly links?: { readonly socketsPerPair?: number; readonly checksum?: "payload" | "header" };
  /** Emulated link, slower than the real link. Absent: no emulation. */
  readonly emulate?: EmulatedDirection;
  /**
   * Mode of lossless compression of sent data. "auto" compresses if compression is faster than sending uncompressed
   * data. Default: "auto".
   */
  readonly codec?: "auto" | "always" | "never";
}

/** Command from the process to its companion thread. */
export type CompanionCommand =
  | { readonly type: "connect"; readonly peers: readonly RosterEntry[]; readonly preference: Preference }
  | { readonly type: "lost"; readonly rank: number; readonly reason: string; readonly kind: LossKind }
  | { readonly type: "end" };

/** Event from a companion thread to its process. */
export type CompanionEvent =
  | { readonly type: "listening"; readonly address: RankAddress }
  | { readonly type: "connected"; readonly express: readonly ExpressEnd[] }
  /** Human-readable log line. */
  | { readonly type: "note"; readonly line: string }
  | { readonly type: "failed"; readonly kind: ErrorKind; readonly code: string; readonly message: string };
