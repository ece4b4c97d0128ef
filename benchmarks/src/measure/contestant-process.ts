import type { ContestantReply, ContestantRequest } from "./protocol.ts";

/** A contestant in a process or a page of its own, idle while another one is measured. */
export interface ContestantProcess {
  readonly name: string;
  ask(request: ContestantRequest): Promise<ContestantReply>;
  close(): void;
}
