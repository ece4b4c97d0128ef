import { type Heartbeat, heartbeatOf } from "@skein/collectives/node";
import type { Job } from "../job/job.ts";

/** Time limits after which processes of a run count as lost or missing, in milliseconds. */
export interface Patience {
  readonly heartbeat: Heartbeat;
  readonly joinTimeoutMilliseconds: number;
}

/** Get the time limits of a job. */
export const patienceOf = ({ network }: Job): Patience => ({
  heartbeat: heartbeatOf(network),
  joinTimeoutMilliseconds: 1000 * network.joinSeconds,
});
