import type { ContestantReply, ContestantRequest } from "./protocol.ts";

/** A contestant in a separate process or page, idle while another contestant is measured. */
export interface ContestantProcess {
  readonly name: string;
  ask(request: ContestantRequest): Promise<ContestantReply>;
  close(): void;
}
