import { type Heartbeat, heartbeatOf } from "@skein/collectives/node";
import type { Job } from "../job/job.ts";

/** What the processes of a run take for a loss, and how long they look for each other; in milliseconds. */
export interface Patience {
  readonly heartbeat: Heartbeat;
  readonly joinTimeoutMilliseconds: number;
}

/** How patient the processes of a job are with each other. */
export const patienceOf = ({ network }: Job): Patience => ({
  heartbeat: heartbeatOf(network),
  joinTimeoutMilliseconds: 1000 * network.joinSeconds,
});
