import type { ContestantReply, ContestantRequest } from "./protocol.ts";

/** An implementation in a separate process or page, idle while another implementation is measured. */
export interface ContestantProcess {
  readonly name: string;
  ask(request: ContestantRequest): Promise<ContestantReply>;
  close(): void;
}
