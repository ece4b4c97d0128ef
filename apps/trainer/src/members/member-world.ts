import type { RankAddress, Roster } from "@skein/collectives/node";
import type { WasmBuild } from "@skein/cpu-kernels";
import type { Job } from "../job/job.ts";
import type { LocalWorld } from "./rank-threads.ts";

/** The world of a run as one of its processes holds it. */
export interface MemberWorld extends LocalWorld {
  /** Where each rank of this process listens for data, in the order of its ranks. */
  readonly addresses: readonly RankAddress[];
  /** Where a launcher that starts all processes alike leaves them to tell each other: give rank 0's words to all. */
  share?(words: string | undefined): Promise<string>;
  /** Reach all others. */
  connect(roster: Roster): Promise<void>;
  close(): Promise<void>;
}

export type OpenMemberWorld = (place: {
  readonly job: Job;
  readonly ranks: readonly number[];
  readonly memory: WebAssembly.Memory;
  readonly kernels: WebAssembly.Module;
  /** Which build of the kernels that is. */
  readonly build: WasmBuild;
  /** Told, in a line, of what people should see to. */
  readonly onNote: (line: string) => void;
}) => Promise<MemberWorld>;
