import type { ErrorKind } from "@skein/tensor-core";
import type { LossKind } from "../errors.ts";
import type { EmulatedDirection } from "../network/emulated-links.ts";
import type { LinkHeartbeat } from "../failure-detection/heartbeat.ts";
import type { RankAddress, RosterEntry } from "../rendezvous/roster.ts";
import type { TlsIdentity } from "../security/tls-identity.ts";
import type { ExpressEnd, Preference, WorldConnection } from "../control-block/world-connection.ts";

/** What the companion of a rank in a world of several processes is started with. */
export interface CompanionInput {
  readonly connection: WorldConnection;
  /** Hash of what all ranks agree on, and version of the program. */
  readonly job: string;
  readonly build: string;
  /** Of the job: each rank proves to each other that it knows it. */
  readonly secret: string;
  /** Speak TLS in the name of this identity; else TCP. What its files hold later is used for later connections. */
  readonly tls?: TlsIdentity;
  /** Address to listen on. Default: 127.0.0.1. */
  readonly listen?: string;
  /** Let bytes travel in the clear beyond this machine. */
  readonly insecure?: boolean;
  /** How often each link gives a sign of life, and after what silence it is lost. Default: as `networkWorld`. */
  readonly heartbeat?: LinkHeartbeat;
  readonly links?: { readonly socketsPerPair?: number; readonly checksum?: "payload" | "header" };
  /** Make every link slower than it is. */
  readonly emulate?: EmulatedDirection;
  /** When to make data smaller without loss. Default: "auto", where it pays. */
  readonly codec?: "auto" | "always" | "never";
}

/** What the process tells a companion. */
export type CompanionCommand =
  | { readonly type: "connect"; readonly peers: readonly RosterEntry[]; readonly preference: Preference }
  | { readonly type: "lost"; readonly rank: number; readonly reason: string; readonly kind: LossKind }
  | { readonly type: "end" };

/** What a companion tells its process. */
export type CompanionEvent =
  | { readonly type: "listening"; readonly address: RankAddress }
  | { readonly type: "connected"; readonly express: readonly ExpressEnd[] }
  /** A line for people. */
  | { readonly type: "note"; readonly line: string }
  | { readonly type: "failed"; readonly kind: ErrorKind; readonly code: string; readonly message: string };
