import { ArgumentError } from "@skein/tensor-core";
import { headerBytes } from "../wire/frame.ts";
import { type Clock, systemClock } from "../clock.ts";
import { DelayLine } from "./delay-line.ts";
import { FrameCopies } from "./frame-copies.ts";
import type { Link, LinkReceiver, OutgoingFrame } from "./link.ts";

/** Emulation of one link direction: the frames that this rank sends to one peer. */
export interface EmulatedDirection {
  /** Bandwidth in bytes per second. Default: the bandwidth of the real link. */
  readonly bytesPerSecond?: number;
  /** Latency in seconds. Default: 0. */
  readonly latencySeconds?: number;
  /** Maximum extra delay per frame in seconds, uniformly distributed. Frames never overtake each other. Default: 0. */
  readonly jitterSeconds?: number;
  /**
   * Whether this link shares one outgoing line and one incoming line with all links of this rank for which `sharesLine`
   * is true, like links that share one network card. Frames on a shared line follow one another. Default: false; the
   * link has a separate outgoing line.
   */
  readonly sharesLine?: boolean;
  /** Time at which the cable is cut, in seconds from now. Later frames are dropped without an error. Default: never. */
  readonly lostAfterSeconds?: number;
}

export interface EmulationOptions {
  /** Returns the emulated bandwidth and latency from this rank to `peer`. Undefined: the link is not emulated. */
  readonly direction: (peer: number) => EmulatedDirection | undefined;
  /** Seed of the random jitter. */
  readonly seed?: number;
  readonly clock?: Clock;
  /** Latency of an empty message on the real link in seconds; subtracted from the emulated latency. Default: 0. */
  readonly ownLatencySeconds?: number;
}

/**
 * Emulates links that are slower than the real links. A frame of b bytes occupies the line for b / bandwidth, frames
 * follow one another, and each frame arrives latency + jitter later. A message of S bytes on an idle line arrives
 * latency + S / bandwidth after it was sent (Hockney's α + S·β), plus the time of its last frame on the real link.
 * Control frames interleave with data frames, like small flows.
 *
 * A frame occupies a shared incoming line for as long as the outgoing line, later by the latency. Therefore frames from
 * one sender do not wait on the incoming line, but frames from two senders wait for each other.
 *
 * The emulation is exact in the clock's time. In real time, the emulation is as exact as the clock's timers, and never
 * faster than the real link.
 *
 * Cost: a copy of each frame. Source of the model: Hockney, "The communication challenge for MPP", 1994.
 * @throws ArgumentError if a bandwidth is not positive, or a time is negative.
 */
export const emulatedLinks = (
  links: Iterable<Link>,
  { direction, seed = 0, clock = systemClock, ownLatencySeconds = 0 }: EmulationOptions,
): Link[] => {
  const leaving: Line = { busyUntil: 0 };
  const coming = { busyUntil: -Infinity, arrivals: new DelayLine(clock) };
  return Array.from(links, (link) => {
    const wanted = direction(link.peer);
    if (wanted === undefined) return link;
    const { latencySeconds = 0 } = wanted;
    if (!(latencySeconds >= ownLatencySeconds))
      throw new ArgumentError(
        `latencySeconds of an emulated link cannot be ${latencySeconds}; use at least the latency of the real link, ${ownLatencySeconds}`,
      );
    const own = { ...wanted, latencySeconds: latencySeconds - ownLatencySeconds };
    return wanted.sharesLine === true
      ? new EmulatedLink(link, own, { leaving, coming }, seed, clock)
      : new EmulatedLink(link, own, { leaving: { busyUntil: 0 } }, seed, clock);
  });
};

/** An emulated transmission line, on which frames follow one another. */
interface Line {
  busyUntil: number;
}

/** An incoming transmission line, with the frames whose arrival has not been reported yet. */
interface ComingLine extends Line {
  readonly arrivals: DelayLine;
}

interface Lines {
  readonly leaving: Line;
  /** Incoming line that several links share. Absent: unlimited incoming bandwidth. */
  readonly coming?: ComingLine;
}

const milliseconds = (name: string, seconds: number): number => {
  if (!(seconds >= 0))
    throw new ArgumentError(`${name} of an emulated link cannot be ${seconds}; use 0 or more seconds`);
  return seconds * 1000;
};

class EmulatedLink implements Link {
  readonly peer: number;
  readonly #link: Link;
  readonly #clock: Clock;
  readonly #departures: DelayLine;
  readonly #arrivals: DelayLine;
  readonly #copies = new FrameCopies();
  readonly #bytesPerMillisecond: number;
  readonly #latency: number;
  readonly #jitter: number;
  readonly #lostAt: number;
  readonly #lines: Lines;
  #destroyed = false;
  #state: number;
  #lastDeparture = 0;
  #lastArrival = 0;
  #lastControl = 0;

  constructor(link: Link, direction: EmulatedDirection, lines: Lines, seed: number, clock: Clock) {
    const { bytesPerSecond = Infinity, latencySeconds = 0, jitterSeconds = 0, lostAfterSeconds = Infinity } = direction;
    if (!(bytesPerSecond > 0))
      throw new ArgumentError(
        `bytesPerSecond of an emulated link cannot be ${bytesPerSecond}; use a positive number, or leave it out for the speed of the real link`,
      );
    this.peer = link.peer;
    this.#link = link;
    this.#lines = lines;
    this.#clock = clock;
    this.#departures = new DelayLine(clock);
    this.#arrivals = new DelayLine(clock);
    this.#bytesPerMillisecond = bytesPerSecond / 1000;
    this.#latency = milliseconds("latencySeconds", latencySeconds);
    this.#jitter = milliseconds("jitterSeconds", jitterSeconds);
    this.#lostAt = clock.now() + milliseconds("lostAfterSeconds", lostAfterSeconds);
    this.#state = (seed ^ Math.imul(link.peer + 1, 0x9e3779b9)) >>> 0;
  }

  get width(): number {
    return 1; // A single line keeps frames in order.
  }

  open(receiver: LinkReceiver): void {
    const { coming } = this.#lines;
    this.#link.open(coming === undefined ? receiver : this.#throughLine(receiver, coming));
  }

  /**
   * Returns a receiver that stores payloads when they actually arrive, and reports each data frame to `receiver` when
   * it would have arrived over the emulated line.
   */
  #throughLine(receiver: LinkReceiver, line: ComingLine): LinkReceiver {
    const deliverAt = (due: number, call: () => void): void =>
      line.arrivals.push(due, () => {
        if (!this.#destroyed) call();
      });
    return {
      limit: (header) => receiver.limit(header),
      target: (header) => receiver.target(header),
      torn: (header) => receiver.torn(header),
      frame: (header, payload) => {
        if (header.type !== "data") return receiver.frame(header, payload);
        const bytes = headerBytes + payload.byteLength;
        line.busyUntil = Math.max(this.#clock.now(), line.busyUntil + bytes / this.#bytesPerMillisecond);
        deliverAt(line.busyUntil, () => receiver.frame(header, payload));
      },
      closed: (error) => deliverAt(line.busyUntil, () => receiver.closed(error)),
    };
  }

  write(frame: OutgoingFrame, handedOver?: () => void, freed?: () => void): void {
    const bytes = headerBytes + frame.payload.byteLength;
    const now = this.#departures.now();
    const begin = frame.type === "data" ? Math.max(now, this.#lines.leaving.busyUntil) : now;
    const departure = begin + bytes / this.#bytesPerMillisecond;
    if (frame.type !== "data") return this.#send({ ...frame, payload: frame.payload.slice() }, departure);
    this.#lines.leaving.busyUntil = departure;
    this.#lastDeparture = departure;
    this.#departures.push(departure, () => {
      this.#send({ ...frame, payload: this.#copies.of(frame.payload) }, departure);
      handedOver?.();
      freed?.();
    });
  }

  hurry(): void {
    // Nothing to do, because payloads may be changed as soon as they have been sent.
  }

  ping(): void {
    if (!this.#lost(this.#clock.now())) this.#link.ping();
  }

  silence(): number {
    return this.#link.silence();
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      // Wait for all frames that have not departed, then for all frames that have not arrived.
      this.#departures.push(this.#lastDeparture, () =>
        this.#arrivals.push(Math.max(this.#lastArrival, this.#lastControl), resolve),
      );
    });
    if (this.#lost(this.#clock.now())) this.#link.destroy();
    else await this.#link.close();
  }

  destroy(): void {
    this.#destroyed = true;
    this.#departures.clear();
    this.#arrivals.clear();
    this.#link.destroy();
  }

  #lost(time: number): boolean {
    return time >= this.#lostAt;
  }

  #send(frame: OutgoingFrame, departure: number): void {
    if (this.#lost(departure)) return;
    const due = departure + this.#latency + this.#jitter * this.#random();
    if (frame.type !== "data") {
      this.#lastControl = Math.max(this.#lastControl, due);
      const line = new DelayLine(this.#clock);
      line.push(due, () => this.#link.write(frame));
      return;
    }
    this.#lastArrival = Math.max(this.#lastArrival, due);
    this.#arrivals.push(this.#lastArrival, () =>
      this.#link.write(frame, undefined, () => this.#copies.takeBack(frame.payload)),
    );
  }

  // SplitMix32; Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014, with 32-bit constants.
  #random(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let bits = this.#state;
    bits = Math.imul(bits ^ (bits >>> 16), 0x21f0aaad);
    bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97);
    return ((bits ^ (bits >>> 15)) >>> 0) / 2 ** 32;
  }
}
