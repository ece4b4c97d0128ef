import { type Heartbeat, heartbeatOf } from "@skein/collectives/node";
import type { Job } from "@skein/job/node";

/**
 * Heartbeat settings, which determine when a process counts as lost, and join timeout, after which a process counts as
 * missing.
 */
export interface Patience {
  readonly heartbeat: Heartbeat;
  readonly joinTimeoutMilliseconds: number;
}

/** Returns the heartbeat settings and the join timeout of a job. */
export const patienceOf = ({ network }: Job): Patience => ({
  heartbeat: heartbeatOf(network),
  joinTimeoutMilliseconds: 1000 * network.joinSeconds,
});
