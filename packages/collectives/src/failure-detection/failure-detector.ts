import { type Clock, systemClock } from "../clock.ts";
import { type LinkHeartbeat, lookMilliseconds, suspectMilliseconds } from "./heartbeat.ts";

/** A connection whose peer is watched. Times are those of the detector's clock, in milliseconds. */
export interface WatchedConnection {
  /** When anything last came from the peer. */
  heardAt(): number;
  /** When anything was last sent that the peer takes for a sign of life. Default: the last ping. */
  sentAt?(): number;
  /** Give a sign of life. */
  ping(): void;
  /** Nothing came for a third of the time after which it is lost; or something has come again. */
  suspected?(isSuspected: boolean): void;
  /** Nothing came for `lossMilliseconds` in which this side listened. It is not watched any more. */
  lost(silenceMilliseconds: number): void;
}

interface Watch {
  readonly connection: WatchedConnection;
  /** When it was heard, or later by the time in which this side did not listen. */
  heardAt: number;
  pingedAt: number;
  suspected: boolean;
  /** It was silent for too long when this side last looked, and had just not listened. */
  overdue: boolean;
}

/**
 * Watches the peers of one thread's connections: gives signs of life, suspects a peer after some silence and gives it
 * up after more, from times alone. Control connections (by process) and data links (by rank) are watched alike.
 *
 * Time in which this side did not look, because its thread was busy or its process stopped, is not held against a peer:
 * what that has sent may lie unread in the system, so nobody is lost in the first look after it. A peer that is heard
 * at least every `lossMilliseconds` less an interval is never lost; one that is silent is, within `lossMilliseconds` of
 * listening and a look.
 *
 * Silence is one of five kinds of evidence, each with one reader:
 *
 * | what has happened | evidence | after | who reads it, and what follows |
 * | --- | --- | --- | --- |
 * | a machine or the way to it is gone, a process stopped | no byte comes | `lossMilliseconds` | this class: a control connection breaks, a rank suspects its link |
 * | a process has ended | its connection ends without a goodbye | at once; between machines 1.5 s of refused connections | `ControlConnection`, `ResumableSocket` |
 * | a main thread is stuck | pings say for how long its event loop has not turned | `stuckMilliseconds` | `pulseReader`, `ControlConnection` |
 * | a rank lives, but takes no part | no frame of a collective comes | `timeoutMilliseconds` | `networkWorld`, the control block between threads |
 * | another rank has given up | it says so, and of whom | 300 ms, for others' reports | `FailureAgreement`: all name one rank |
 */
export class FailureDetector {
  readonly #heartbeat: LinkHeartbeat;
  readonly #clock: Clock;
  readonly #watches = new Set<Watch>();
  #lookedAt: number;
  #cancel: () => void = () => undefined;

  constructor(heartbeat: LinkHeartbeat, clock: Clock = systemClock) {
    this.#heartbeat = heartbeat;
    this.#clock = clock;
    this.#lookedAt = clock.now();
    this.#arm();
  }

  /** Watch a peer, as heard now. @returns what ends it. */
  watch(connection: WatchedConnection): () => void {
    const now = this.#clock.now();
    const watch: Watch = { connection, heardAt: now, pingedAt: now, suspected: false, overdue: false };
    this.#watches.add(watch);
    return () => void this.#watches.delete(watch);
  }

  /** Judge all peers by what was heard until now. Happens by itself, twice an interval. */
  look(): void {
    const now = this.#clock.now();
    const missed = Math.max(0, now - this.#lookedAt - this.#heartbeat.intervalMilliseconds);
    this.#lookedAt = now;
    for (const watch of this.#watches) this.#judge(watch, now, missed);
  }

  /** Watch nobody any more. */
  close(): void {
    this.#cancel();
    this.#watches.clear();
  }

  #arm(): void {
    this.#cancel = this.#clock.after(lookMilliseconds(this.#heartbeat), () => {
      this.#arm(); // first: who is told of a loss may close this
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
    // Early by half a look, so that a timer which is late by little costs no whole look.
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
