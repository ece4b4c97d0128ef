import { type Clock, systemClock } from "../clock.ts";
import { type LinkHeartbeat, lookMilliseconds, suspectMilliseconds } from "./heartbeat.ts";

/** A connection to a watched peer. Times are in milliseconds of the detector's clock. */
export interface WatchedConnection {
  /** Returns the time at which the last data was received from the peer. */
  heardAt(): number;
  /**
   * Returns the time at which this end of the connection last sent data that the peer counts as a sign of life.
   * Default: the time of the last ping.
   */
  sentAt?(): number;
  /** Sends a ping. */
  ping(): void;
  /** Called with true after silence of a third of the loss time, and with false when data is received again. */
  suspected?(isSuspected: boolean): void;
  /**
   * Called after silence of `lossMilliseconds` during which this thread was listening. The peer is no longer watched.
   */
  lost(silenceMilliseconds: number): void;
}

interface Watch {
  readonly connection: WatchedConnection;
  /** Adjusted time of the last sign of life: time of receipt, plus the time during which this thread did not listen. */
  heardAt: number;
  pingedAt: number;
  suspected: boolean;
  /**
   * Whether the silence exceeded `lossMilliseconds` at the last check. If this thread had not listened for some time
   * before that check, the peer was not reported as lost, but the next check reports the peer if the silence continues.
   */
  overdue: boolean;
}

/**
 * Watches the peers of one thread's connections, based only on the times of sent and received data. Sends pings,
 * suspects a peer after some silence, and reports the peer as lost after longer silence. Control connections (per
 * process) and data links (per rank) are watched in the same way.
 *
 * Time without checks, because this thread was busy or its process was stopped, does not count as silence of a peer.
 * The operating system may still have unread bytes of the peer, so the first check after such a time does not report
 * any peer as lost. A peer that sends data at least every `lossMilliseconds` minus one interval is never reported as
 * lost. A silent peer is reported as lost after at most `lossMilliseconds` plus one interval between checks. Time
 * without checks is not included in this limit.
 *
 * If this class reports a loss, a control connection breaks, and the rank of a data link gives up on the link's peer.
 * Silence is one of five kinds of evidence of a failure. Each kind is handled in one place:
 *
 * | event | evidence | delay | handled by |
 * | --- | --- | --- | --- |
 * | a machine or its network is gone, a process stopped | no byte arrives | `lossMilliseconds` | this class |
 * | a process has ended | its connection ends without a goodbye | at once; between machines 1.5 s of refused connections | `ControlConnection`, `ResumableSocket` |
 * | a main thread is stuck | pings report for how long its event loop has been blocked | `stuckMilliseconds` | `pulseReader`, `ControlConnection` |
 * | a rank lives, but does not join a collective | no frame of a collective arrives | `timeoutMilliseconds` | `createNetworkWorld`, the control block between threads |
 * | another rank has given up | its report, which names a rank | 300 ms, to wait for the reports of other ranks | `FailureAgreement`, so that all ranks name the same rank |
 */
export class FailureDetector {
  readonly #heartbeat: LinkHeartbeat;
  readonly #clock: Clock;
  readonly #watches = new Set<Watch>();
  #checkedAt: number;
  #cancel: () => void = () => undefined;

  constructor(heartbeat: LinkHeartbeat, clock: Clock = systemClock) {
    this.#heartbeat = heartbeat;
    this.#clock = clock;
    this.#checkedAt = clock.now();
    this.#arm();
  }

  /**
   * Watches a peer. The peer's silence is measured from now on.
   *
   * @returns a function that ends the watch.
   */
  watch(connection: WatchedConnection): () => void {
    const now = this.#clock.now();
    const watch: Watch = { connection, heardAt: now, pingedAt: now, suspected: false, overdue: false };
    this.#watches.add(watch);
    return () => void this.#watches.delete(watch);
  }

  /** Checks the silence of all peers. Called automatically, twice per interval. */
  look(): void {
    const now = this.#clock.now();
    const missed = Math.max(0, now - this.#checkedAt - this.#heartbeat.intervalMilliseconds);
    this.#checkedAt = now;
    for (const watch of this.#watches) this.#judge(watch, now, missed);
  }

  /** Stops watching all peers. */
  close(): void {
    this.#cancel();
    this.#watches.clear();
  }

  #arm(): void {
    this.#cancel = this.#clock.after(lookMilliseconds(this.#heartbeat), () => {
      this.#arm(); // Set the timer first, because the callback for a loss may close this detector.
      this.look();
    });
  }

  #judge(watch: Watch, now: number, missed: number): void {
    const { connection } = watch;
    const { intervalMilliseconds, lossMilliseconds } = this.#heartbeat;
    watch.heardAt = Math.min(now, Math.max(watch.heardAt, connection.heardAt()) + missed);
    const silence = now - watch.heardAt;
    if (silence >= lossMilliseconds && (missed === 0 || watch.overdue)) {
      this.#watches.delete(watch);
      return connection.lost(silence);
    }
    watch.overdue = silence >= lossMilliseconds;
    const sentAt = Math.max(watch.pingedAt, connection.sentAt?.() ?? 0);
    // Ping half a check interval early, so that a timer that fires slightly late does not delay the ping by a whole
    // interval.
    if (now - sentAt >= intervalMilliseconds - lookMilliseconds(this.#heartbeat) / 2) {
      watch.pingedAt = now;
      connection.ping();
    }
    const isSuspected = silence >= suspectMilliseconds(this.#heartbeat);
    if (isSuspected === watch.suspected) return;
    watch.suspected = isSuspected;
    connection.suspected?.(isSuspected);
  }
}
