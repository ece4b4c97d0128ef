import { ArgumentError } from "@skein/tensor-core";
import { headerBytes } from "../wire/frame.ts";
import { type Clock, systemClock } from "../clock.ts";
import { DelayLine } from "./delay-line.ts";
import { FrameCopies } from "./frame-copies.ts";
import type { Link, LinkReceiver, OutgoingFrame } from "./link.ts";

/** One direction of a pair: what this rank sends to one peer. */
export interface EmulatedDirection {
  /** Default: as fast as the link. */
  readonly bytesPerSecond?: number;
  /** Default: 0. */
  readonly latencySeconds?: number;
  /** Each frame is late by up to this much more, evenly spread; none overtakes. Default: 0. */
  readonly jitterSeconds?: number;
  /**
   * Whether its frames leave by the one line that this rank has, one after the other with those of its other links that
   * say so, and what comes over these links comes by one line too: a network card of its own. Default: a line for each
   * link.
   */
  readonly sharesLine?: boolean;
  /** When the cable is cut, in seconds from now: nothing leaves after that, and nobody is told. Default: never. */
  readonly lostAfterSeconds?: number;
}

export interface EmulationOptions {
  /** The direction from this rank to `peer`; undefined leaves the link as it is. */
  readonly direction: (peer: number) => EmulatedDirection | undefined;
  /** Of the jitter. */
  readonly seed?: number;
  readonly clock?: Clock;
  /** What an empty message takes over the link as it is; taken off the latency. Default: 0. */
  readonly ownLatencySeconds?: number;
}

/**
 * Slow links down to what others have. A frame of b bytes occupies the line for b / bandwidth, one after the other, and
 * arrives latency + jitter later: a message of S bytes on an idle line arrives latency + S / bandwidth after it was
 * sent (Hockney's α + S·β), plus what the link itself takes for its last frame. Control frames go between data, as
 * small flows do.
 *
 * A frame that comes by a shared line occupies it for as long as that it left by, and at the same time but for the
 * latency: frames of one sender wait for nothing, those of two for each other.
 *
 * Exact in the clock's time; on real time as exact as its timers, and as slow as the link at least.
 *
 * Cost: a copy of each frame. Source of the model: Hockney, "The communication challenge for MPP", 1994.
 * @throws ArgumentError for a bandwidth that is not positive, or a negative time.
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
        `latencySeconds of an emulated link cannot be ${latencySeconds}; it is at least the link's own, ${ownLatencySeconds}`,
      );
    const own = { ...wanted, latencySeconds: latencySeconds - ownLatencySeconds };
    return wanted.sharesLine === true
      ? new EmulatedLink(link, own, { leaving, coming }, seed, clock)
      : new EmulatedLink(link, own, { leaving: { busyUntil: 0 } }, seed, clock);
  });
};

/** What frames travel by, one after the other. */
interface Line {
  busyUntil: number;
}

/** What they come by, and what is to be told when they are through. */
interface ComingLine extends Line {
  readonly arrivals: DelayLine;
}

interface Lines {
  readonly leaving: Line;
  /** Default: as wide as all that comes. */
  readonly coming?: ComingLine;
}

const milliseconds = (name: string, seconds: number): number => {
  if (!(seconds >= 0))
    throw new ArgumentError(`${name} of an emulated link cannot be ${seconds}; it is in seconds, from 0`);
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
        `bytesPerSecond of an emulated link cannot be ${bytesPerSecond}; it is positive, so leave it out for the link's own speed`,
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
    return 1; // one line, in order
  }

  open(receiver: LinkReceiver): void {
    const { coming } = this.#lines;
    this.#link.open(coming === undefined ? receiver : this.#throughLine(receiver, coming));
  }

  /** Bytes land when they come; that they are there is told when the line would have brought them. */
  #throughLine(receiver: LinkReceiver, line: ComingLine): LinkReceiver {
    const tell = (due: number, call: () => void): void =>
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
        tell(line.busyUntil, () => receiver.frame(header, payload));
      },
      closed: (error) => tell(line.busyUntil, () => receiver.closed(error)),
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
    // Payloads may change as soon as they have left.
  }

  ping(): void {
    if (!this.#lost(this.#clock.now())) this.#link.ping();
  }

  silence(): number {
    return this.#link.silence();
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      // Behind all that has not left yet, and then behind all that has not arrived.
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
