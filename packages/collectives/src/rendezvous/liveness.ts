import { ArgumentError } from "@skein/tensor-core";
import type { Heartbeat } from "./handshake-messages.ts";

/**
 * A second between pings. A process that dies is told at once, by the end of its connection; so silence may last 15 s before it counts as a
 * loss: as long as a switch takes to find another path, or a machine to be moved. A main thread may write or read files for a minute.
 */
export const defaultHeartbeat: Heartbeat = { intervalMilliseconds: 1000, lossMilliseconds: 15_000, stuckMilliseconds: 60_000 };

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

/**
 * Decides when to ping a peer and when it is lost, from times alone. All in milliseconds of one monotonic clock.
 *
 * Time in which this side did not look, because its thread was busy or stopped, is not held against the peer: what it sent may lie
 * unread in the system.
 */
export class Liveness {
  readonly #heartbeat: Heartbeat;
  #heard: number;
  #sent: number;
  #looked: number;

  constructor(heartbeat: Heartbeat, now: number) {
    this.#heartbeat = heartbeat;
    this.#heard = this.#sent = this.#looked = now;
  }

  /** How often to `look`. */
  get lookMilliseconds(): number {
    return Math.min(this.#heartbeat.intervalMilliseconds / 2, this.#heartbeat.lossMilliseconds / 6);
  }

  heard(now: number): void {
    this.#heard = now;
  }

  sent(now: number): void {
    this.#sent = now;
  }

  /** What to do now: nothing, send a ping, or give the peer up. */
  look(now: number): "rest" | "ping" | "lost" {
    const missed = now - this.#looked - this.#heartbeat.intervalMilliseconds;
    if (missed > 0) this.#heard = Math.min(now, this.#heard + missed);
    this.#looked = now;
    if (now - this.#heard >= this.#heartbeat.lossMilliseconds) return "lost";
    return now - this.#sent >= this.#heartbeat.intervalMilliseconds - this.lookMilliseconds / 2 ? "ping" : "rest";
  }

  /** Silence so far, for messages. */
  silence(now: number): number {
    return now - this.#heard;
  }
}
