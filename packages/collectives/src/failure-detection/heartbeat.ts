import { ArgumentError } from "@skein/tensor-core";

/** Heartbeat intervals and loss times, equal for control connections and data links. */
export interface Heartbeat {
  /** Maximum time without sent data before a ping is sent. */
  readonly intervalMilliseconds: number;
  /** Silence after which a peer counts as lost: its process is stopped, or its machine or network is gone. */
  readonly lossMilliseconds: number;
  /** Time after which a peer with a blocked main thread counts as lost, although its pings are received. */
  readonly stuckMilliseconds: number;
}

/**
 * Heartbeat settings of a data link. The thread of a link does not compute, so there is no limit for a blocked thread.
 */
export type LinkHeartbeat = Pick<Heartbeat, "intervalMilliseconds" | "lossMilliseconds">;

/**
 * Default heartbeat settings. The death of a process is reported immediately, by the end of its connection. Therefore
 * silence may last 15 s before a peer counts as lost, enough time for a switch to find another path or for a virtual
 * machine to migrate. A main thread may write or read files for a minute.
 */
export const defaultHeartbeat: Heartbeat = {
  intervalMilliseconds: 1000,
  lossMilliseconds: 15_000,
  stuckMilliseconds: 60_000,
};

/** Minimum number of heartbeats within the loss time. */
const signsPerLoss = 4;

/** Time limits of a job for its processes. */
export interface Patience {
  /** Maximum time that a rank waits for another rank in a collective. */
  readonly timeoutSeconds: number;
  /** Silence after which a process or a link counts as lost. Default: 15 s, or `timeoutSeconds` if this is less. */
  readonly silenceSeconds?: number | undefined;
  /** Interval of heartbeats. Default: 1 s, or a fourth of the silence if this is less. */
  readonly heartbeatSeconds?: number | undefined;
}

/**
 * Returns the silence after which a process or a link counts as lost, in seconds.
 *
 * @example
 * ```ts
 * console.log(silenceSecondsOf({ timeoutSeconds: 30 })); // 15
 * ```
 */
export const silenceSecondsOf = ({ silenceSeconds, timeoutSeconds }: Patience): number =>
  silenceSeconds ?? Math.min(defaultHeartbeat.lossMilliseconds / 1000, timeoutSeconds);

/** Computes the heartbeat settings from a job's time limits. All connections of the job use these settings. */
export const heartbeatOf = (patience: Patience): Heartbeat => {
  const silence = silenceSecondsOf(patience);
  const { intervalMilliseconds, stuckMilliseconds } = defaultHeartbeat;
  return {
    intervalMilliseconds:
      1000 * (patience.heartbeatSeconds ?? Math.min(intervalMilliseconds / 1000, silence / signsPerLoss)),
    lossMilliseconds: 1000 * silence,
    stuckMilliseconds: Math.max(1000 * patience.timeoutSeconds, stuckMilliseconds),
  };
};

/** Returns the silence, in milliseconds, after which a peer is suspected and the user is notified. */
export const suspectMilliseconds = ({ lossMilliseconds }: LinkHeartbeat): number => lossMilliseconds / 3;

/**
 * Returns the interval between checks in milliseconds: half a heartbeat interval, and at most half the time until
 * suspicion.
 */
export const lookMilliseconds = ({ intervalMilliseconds, lossMilliseconds }: LinkHeartbeat): number =>
  Math.min(intervalMilliseconds / 2, lossMilliseconds / 6);

/**
 * Checks a heartbeat.
 *
 * @throws ArgumentError if the loss time is less than two intervals, or a time is out of range.
 */
export const checkHeartbeat = ({ intervalMilliseconds, lossMilliseconds, stuckMilliseconds }: Heartbeat): void => {
  if (!(intervalMilliseconds > 0 && lossMilliseconds >= 2 * intervalMilliseconds && lossMilliseconds <= 2 ** 31))
    throw new ArgumentError(
      `a heartbeat every ${intervalMilliseconds} ms with loss after ${lossMilliseconds} ms is invalid; intervals are positive, and loss takes at least two intervals and at most ${2 ** 31} ms`,
    );
  if (!(stuckMilliseconds > 0 && stuckMilliseconds <= 2 ** 31))
    throw new ArgumentError(
      `a main thread cannot count as stuck after ${stuckMilliseconds} ms; use a number above 0 and up to ${2 ** 31}`,
    );
};
