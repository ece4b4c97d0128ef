import { ArgumentError } from "@skein/tensor-core";

/**
 * How often a connection is heard from, and what it takes to be lost: the same for control connections and data links.
 */
export interface Heartbeat {
  /** A side that has sent nothing for so long sends a ping. */
  readonly intervalMilliseconds: number;
  /** A side that was not heard for so long is lost: its process is stopped, its machine gone, or the way to it. */
  readonly lossMilliseconds: number;
  /** A side that is heard, but whose main thread has done nothing for so long, is lost too: it is stuck. */
  readonly stuckMilliseconds: number;
}

/** What a data link needs of it: nobody computes in the thread that holds one. */
export type LinkHeartbeat = Pick<Heartbeat, "intervalMilliseconds" | "lossMilliseconds">;

/**
 * A second between pings. A process that dies is told at once, by the end of its connection; so silence may last 15 s
 * before it counts as a loss: as long as a switch takes to find another path, or a machine to be moved. A main thread
 * may write or read files for a minute.
 */
export const defaultHeartbeat: Heartbeat = {
  intervalMilliseconds: 1000,
  lossMilliseconds: 15_000,
  stuckMilliseconds: 60_000,
};

/** Signs of life in the time of silence that counts as a loss, at least. */
const signsPerLoss = 4;

/** How patient the processes of a job are with each other, as far as the job says. */
export interface Patience {
  /** How long a rank waits for another in a collective. */
  readonly timeoutSeconds: number;
  /** After what silence a process or a link is lost. Default: 15, or `timeoutSeconds` where that is less. */
  readonly silenceSeconds?: number | undefined;
  /** How often each gives a sign of life. Default: 1, or a fourth of the silence where that is less. */
  readonly heartbeatSeconds?: number | undefined;
}

/** After what silence a process or a link is lost. */
export const silenceSecondsOf = ({ silenceSeconds, timeoutSeconds }: Patience): number =>
  silenceSeconds ?? Math.min(defaultHeartbeat.lossMilliseconds / 1000, timeoutSeconds);

/** Derive the periods of all connections of a job: the one place where they come from. */
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

/** After what silence a peer is suspected, and people are told. */
export const suspectMilliseconds = ({ lossMilliseconds }: LinkHeartbeat): number => lossMilliseconds / 3;

/** How often to look: twice an interval, and twice in the time of a suspicion. */
export const lookMilliseconds = ({ intervalMilliseconds, lossMilliseconds }: LinkHeartbeat): number =>
  Math.min(intervalMilliseconds / 2, lossMilliseconds / 6);

/** @throws ArgumentError when a lost ping or two would already count as a loss. */
export const checkHeartbeat = ({ intervalMilliseconds, lossMilliseconds, stuckMilliseconds }: Heartbeat): void => {
  if (!(intervalMilliseconds > 0 && lossMilliseconds >= 2 * intervalMilliseconds && lossMilliseconds <= 2 ** 31))
    throw new ArgumentError(
      `a heartbeat every ${intervalMilliseconds} ms with loss after ${lossMilliseconds} ms cannot be kept; loss takes at least two intervals`,
    );
  if (!(stuckMilliseconds > 0 && stuckMilliseconds <= 2 ** 31))
    throw new ArgumentError(
      `a main thread cannot count as stuck after ${stuckMilliseconds} ms; it is a number of milliseconds above 0 and up to ${2 ** 31}`,
    );
};
