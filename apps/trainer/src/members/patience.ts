import type { Job, NetworkJob } from "../job.ts";

/** As long as a switch takes to find another path, or a virtual machine to be moved: a process that ends is noticed without it. */
const longestDefaultSilenceSeconds = 15;
/** Signs of life in the time of silence that counts as a loss. */
const signsPerSilence = 4;
/** A main thread may load data from a slow disk, or save to one, for so long. */
const leastStuckSeconds = 60;

/** After what silence a process or a link is lost. */
export const silenceSecondsOf = ({ silenceSeconds, timeoutSeconds }: NetworkJob): number =>
  silenceSeconds ?? Math.min(longestDefaultSilenceSeconds, timeoutSeconds);

/** What the processes of a run take for a loss, and how long they look for each other; in milliseconds. */
export interface Patience {
  readonly heartbeat: {
    readonly intervalMilliseconds: number;
    readonly lossMilliseconds: number;
    readonly stuckMilliseconds: number;
  };
  readonly joinTimeoutMilliseconds: number;
}

/** How patient the processes of a job are with each other. */
export const patienceOf = ({ network }: Job): Patience => {
  const silence = silenceSecondsOf(network);
  return {
    heartbeat: {
      intervalMilliseconds: 1000 * (network.heartbeatSeconds ?? Math.min(1, silence / signsPerSilence)),
      lossMilliseconds: 1000 * silence,
      stuckMilliseconds: 1000 * Math.max(network.timeoutSeconds, leastStuckSeconds),
    },
    joinTimeoutMilliseconds: 1000 * network.joinSeconds,
  };
};
