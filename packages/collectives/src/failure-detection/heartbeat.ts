import { ArgumentError } from "@skein/tensor-core";

/** Heartbeat periods and loss times; the same for control connections and data links. */
export interface Heartbeat {
  /** A side that has sent nothing for this time sends a ping. */
  readonly intervalMilliseconds: number;
  /** A side that was not heard for this time is lost: its process is stopped, or its machine or network is gone. */
  readonly lossMilliseconds: number;
  /** A side that is heard, but whose main thread has been blocked for this time, is lost too. */
  readonly stuckMilliseconds: number;
}

/** Periods for a data link, whose thread does not compute. */
export type LinkHeartbeat = Pick<Heartbeat, "intervalMilliseconds" | "lossMilliseconds">;

/**
 * One second between pings. The death of a process is reported at once, by the end of its connection. So silence may
 * last 15 s before it counts as a loss, enough time for a switch to find another path or for a virtual machine to
 * migrate. A main thread may write or read files for a minute.
 */
export const defaultHeartbeat: Heartbeat = {
  intervalMilliseconds: 1000,
  lossMilliseconds: 15_000,
  stuckMilliseconds: 60_000,
};

/** Minimum number of heartbeats within the silence that counts as a loss. */
const signsPerLoss = 4;

/** Time limits of a job for its processes. */
export interface Patience {
  /** Time that a rank waits for another rank in a collective. */
  readonly timeoutSeconds: number;
  /** Silence after which a process or a link is lost. Default: 15, or `timeoutSeconds` if less. */
  readonly silenceSeconds?: number | undefined;
  /** Interval of heartbeats. Default: 1, or a fourth of the silence if less. */
  readonly heartbeatSeconds?: number | undefined;
}

/** Silence after which a process or a link is lost, in seconds. */
export const silenceSecondsOf = ({ silenceSeconds, timeoutSeconds }: Patience): number =>
  silenceSeconds ?? Math.min(defaultHeartbeat.lossMilliseconds / 1000, timeoutSeconds);

/** Derives the periods of all connections of a job. All connections get their periods from this function. */
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

/** Silence after which a peer is suspected and people are notified. */
export const suspectMilliseconds = ({ lossMilliseconds }: LinkHeartbeat): number => lossMilliseconds / 3;

/** Interval of looks: half a heartbeat interval, and at most half the time until suspicion. */
export const lookMilliseconds = ({ intervalMilliseconds, lossMilliseconds }: LinkHeartbeat): number =>
  Math.min(intervalMilliseconds / 2, lossMilliseconds / 6);

/**
 * Checks heartbeat periods.
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
