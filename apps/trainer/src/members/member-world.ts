import type { RankAddress, Roster } from "@skein/collectives/node";
import type { WasmBuild } from "@skein/cpu-kernels";
import type { Job } from "@skein/job/node";
import type { LocalWorld } from "./rank-threads.ts";

/** Communication of one process of a run with the other processes of the run. */
export interface MemberWorld extends LocalWorld {
  /** Address at which each rank of this process listens for data, in rank order. */
  readonly addresses: readonly RankAddress[];
  /**
   * Broadcasts a text from rank 0 to all processes. Absent: the launcher does not start all processes with the same
   * command.
   */
  share?(words: string | undefined): Promise<string>;
  /** Connects to all other processes. */
  connect(roster: Roster): Promise<void>;
  close(): Promise<void>;
}

export type OpenMemberWorld = (place: {
  readonly job: Job;
  readonly ranks: readonly number[];
  readonly memory: WebAssembly.Memory;
  readonly kernels: WebAssembly.Module;
  /** Build of the WebAssembly kernels. */
  readonly build: WasmBuild;
  /** Receives human-readable lines for the user. */
  readonly onNote: (line: string) => void;
}) => Promise<MemberWorld>;
