import { ArgumentError, InvariantError } from "@skein/tensor-core";
import {
  type CollectiveError,
  CollectiveTimeoutError,
  GroupClosedError,
  type LossKind,
  PeerLostError,
  PeerRevokedError,
  RanksDisagreeError,
} from "../errors.ts";
import type { MessageMemory } from "../message-memory.ts";
import type { FrameHeader } from "../wire/frame.ts";
import type { ExpressWait } from "../control-block/express-words.ts";
import { RevokedPeerError } from "../security/errors.ts";
import {
  defaultGraceMilliseconds,
  FailureAgreement,
  type FailureDecision,
} from "../failure-detection/failure-agreement.ts";
import { FailureDetector } from "../failure-detection/failure-detector.ts";
import {
  decodeFailureReport,
  encodeFailureReport,
  type FailureReport,
  longestFailureReport,
} from "../failure-detection/failure-report.ts";
import { defaultHeartbeat, type LinkHeartbeat } from "../failure-detection/heartbeat.ts";
import { type Clock, systemClock } from "../clock.ts";
import { defaultFlow, type Flow } from "./flow.ts";
import { laneTransport, type NetworkTransport } from "./lane-transport.ts";
import type { Link, LinkCodec, OutgoingFrame } from "./link.ts";
import { ReceiveQueue } from "./receive-queue.ts";
import { Route } from "./route.ts";
import { SendQueue } from "./send-queue.ts";
import { busyPoll } from "./busy-poll.ts";

/** Rank, links and limits of one rank of a network world. */
export interface NetworkWorldOptions extends Partial<Flow> {
  readonly rank: number;
  readonly worldSize: number;
  /**
   * Maximum number of requests in flight: one per lane. Each lane has a separate transport, and the highest lane has
   * the highest priority.
   */
  readonly lanes: number;
  /** Link to each peer that is reached over a network. */
  readonly links: Iterable<Link>;
  /** Memory for messages that are operands of sums, and for messages that arrive before they are requested. */
  readonly memory: MessageMemory;
  /** Maximum duration of a wait during which the peer makes no progress. After this time, the world fails. */
  readonly timeoutMilliseconds: number;
  /**
   * Maximum number of bytes per socket that were written to a link and not yet accepted by the system. An urgent
   * message waits for these bytes.
   */
  readonly outstandingBytes?: number;
  /** Codec of the data. Both ends of a link must use the same codec. Absent: no compression. */
  readonly codec?: LinkCodec;
  /**
   * Heartbeat interval of each link, and the silence after which a link counts as lost. Default: `defaultHeartbeat`.
   * The end of a process is detected immediately.
   */
  readonly heartbeat?: LinkHeartbeat | undefined;
  /** Time that a rank waits for reports of other ranks after it gives up. Default: `defaultGraceMilliseconds`. */
  readonly graceMilliseconds?: number;
  readonly clock?: Clock;
  /**
   * Function that schedules a callback in the next turn of the event loop, such as `setImmediate`. Set this option if
   * the rank has a spare core. A waiting rank then polls for messages before it sleeps. Absent: the rank sleeps without
   * polling.
   */
  readonly turn?: (call: () => void) => void;
  /** Maximum polling time of a waiting rank. Default: 1 ms. */
  readonly pollMilliseconds?: number;
  /**
   * Returns the current wait of the rank's compute thread on an express connection, or undefined. Without this method,
   * the world cannot observe waits on express connections.
   */
  readonly expressWait?: () => ExpressWait | undefined;
  /** Returns the name of the collective with this tag, for error messages. */
  readonly nameOf?: (tag: number) => string;
}

/** Connections of one rank to the other ranks of a world, over networks. */
export interface NetworkWorld {
  /** One transport per lane. */
  readonly transports: readonly NetworkTransport[];
  /**
   * Returns the error that made the world fail, and that every later call throws. Undefined: the world has not failed.
   */
  failure(): CollectiveError | undefined;
  /** Registers a callback for the failure of the world, for code that is not waiting when the world fails. */
  onFailure(call: (error: CollectiveError) => void): void;
  /** Records the loss of a rank, as detected by watching the processes. */
  reportLost(rank: number, reason: string, kind?: LossKind): void;
  /** Records that this rank detected a disagreement with another rank, and notifies all peers. */
  disagree(error: RanksDisagreeError): void;
  /** Sends a goodbye to all peers and closes the links. Call this method when this rank has finished. */
  close(): Promise<void>;
}

interface Wait {
  readonly peer: number;
  readonly tag: number;
  /** Time at which the peer last made progress. */
  readonly progress: number;
}

interface Peer {
  readonly link: Link;
  readonly queue: SendQueue;
  readonly routes: readonly Route[];
  /** Whether the peer has sent a goodbye. */
  left: boolean;
  unwatch: () => void;
}

/**
 * Default of `outstandingBytes`: 2 MiB keep the system's buffer (at most 4 MiB on Linux) filled while the event loop is
 * busy.
 */
const defaultOutstandingBytes = 2 ** 21;
/**
 * Maximum time from the end of a peer's first connection until the peer's goodbye, or until its other connections end.
 */
const endedMilliseconds = 1000;
const empty = new Uint8Array(0);

/**
 * Creates transports over links of any kind: one transport per lane, all between the same ranks.
 *
 * Bytes are copied at most one time in user space. A message that was requested before it arrived is not copied. Any
 * other message is first stored in message memory. A sender runs at most `earlyBytes` per lane ahead of its receiver.
 *
 * Every wait ends with the message, with PeerLostError if the peer's link is lost or silent, or with
 * CollectiveTimeoutError if the peer lives but sends nothing for `timeoutMilliseconds`. Both errors name the rank that
 * caused the failure. After an error, all lanes fail permanently.
 * @throws ArgumentError if the settings are invalid.
 */
export const createNetworkWorld = (options: NetworkWorldOptions): NetworkWorld => new World(options);

class World implements NetworkWorld {
  readonly transports: readonly NetworkTransport[];
  readonly #options: NetworkWorldOptions;
  readonly #clock: Clock;
  readonly #peers: ReadonlyMap<number, Peer>;
  readonly #agreement: FailureAgreement;
  readonly #detector: FailureDetector;
  readonly #listeners: ((error: CollectiveError) => void)[] = [];
  readonly #poll: () => void;
  /**
   * Last observed wait on an express connection. `count`: sequence number of the wait. `progress`: time at which the
   * wait was first observed.
   */
  #expressProgress = { count: 0, progress: 0 };
  #decision: FailureDecision | undefined;
  #closed = false;
  #cancelTick: () => void = () => undefined;

  constructor(options: NetworkWorldOptions) {
    const { rank, lanes, worldSize, memory, clock = systemClock, turn, pollMilliseconds = 1 } = options;
    const flow = {
      frameBytes: options.frameBytes ?? defaultFlow.frameBytes,
      earlyBytes: options.earlyBytes ?? defaultFlow.earlyBytes,
    };
    if (flow.earlyBytes < flow.frameBytes || flow.frameBytes < 1)
      throw new ArgumentError(
        `earlyBytes ${flow.earlyBytes} is less than frameBytes ${flow.frameBytes}, or frameBytes is less than 1; a sender's credit must hold a frame, so raise earlyBytes`,
      );
    this.#options = options;
    this.#clock = clock;
    this.#poll = turn === undefined ? () => undefined : busyPoll(turn, pollMilliseconds, clock);
    this.#agreement = new FailureAgreement({
      rank,
      clock,
      graceMilliseconds: options.graceMilliseconds ?? defaultGraceMilliseconds,
      waiting: () => this.#longestWait(),
      broadcast: (report) => this.#broadcast(report),
      decided: (decision) => this.#fail(decision),
    });
    this.#detector = new FailureDetector(options.heartbeat ?? defaultHeartbeat, clock);
    const peers = new Map<number, Peer>();
    for (const link of options.links) {
      if (link.peer === rank || link.peer >= worldSize || peers.has(link.peer))
        throw new InvariantError(
          `rank ${rank} of ${worldSize} got a link to rank ${link.peer}, which is the rank itself, outside the world, or already linked`,
        );
      peers.set(link.peer, this.#addPeer(link, flow));
    }
    this.#peers = peers;
    this.transports = Array.from({ length: lanes }, (_, lane) =>
      laneTransport({
        rank,
        worldSize,
        memory,
        now: () => clock.now(),
        routeTo: (peer) => {
          const found = peers.get(peer);
          if (found === undefined) throw new InvariantError(`rank ${rank} of ${worldSize} has no link to rank ${peer}`);
          return { route: found.routes[lane]!, queue: found.queue };
        },
        requireUsable: (route) => this.#requireUsable(route),
        waiting: ({ peer, tag }) => {
          this.#poll();
          if (peers.get(peer)!.left) this.#suspectLeft(peer, tag);
        },
        hurry: (peer) => peers.get(peer)!.link.hurry(),
        attempt: (route, call) => {
          try {
            return call();
          } catch (error) {
            this.#broken(route.peer, error as Error);
            this.#requireUsable(route);
            throw error;
          }
        },
      }),
    );
    for (const peer of peers.values()) this.#open(peer, flow);
    this.#tick();
  }

  failure(): CollectiveError | undefined {
    return this.#decision === undefined ? undefined : this.#errorOf(this.#decision, this.#nameOf(this.#decision.tag));
  }

  onFailure(call: (error: CollectiveError) => void): void {
    const failed = this.failure();
    if (failed === undefined) this.#listeners.push(call);
    else call(failed);
  }

  reportLost(rank: number, reason: string, kind: LossKind = "lost"): void {
    this.#agreement.decide({ kind, rank, tag: 0, reason });
  }

  disagree({ peer, difference }: RanksDisagreeError): void {
    this.#agreement.suspect({ kind: "disagree", rank: peer, tag: 0, reason: difference });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#agreement.cancel();
    this.#detector.close();
    this.#cancelTick();
    for (const route of this.#routes()) route.reject(() => this.#closedError(route));
    await Promise.all(Array.from(this.#peers.values(), ({ link }) => link.close()));
  }

  #addPeer(link: Link, flow: Flow): Peer {
    const { rank, lanes, memory, codec, outstandingBytes = defaultOutstandingBytes } = this.#options;
    const { peer } = link;
    const disagree = (difference: string, tag: number): never => {
      throw new RanksDisagreeError({ rank, peer, collective: this.#nameOf(tag) }, `rank ${peer}: ${difference}`);
    };
    return {
      link,
      left: false,
      unwatch: () => undefined,
      queue: new SendQueue({
        ...flow,
        lanes,
        codec,
        outstandingBytes: outstandingBytes * link.width,
        write: (frame, handedOver, freed) => link.write(frame, handedOver, freed),
      }),
      routes: Array.from(
        { length: lanes },
        (_, lane) =>
          new Route(
            peer,
            lane,
            (complete) =>
              new ReceiveQueue({
                ...flow,
                memory,
                codec,
                grant: (bytes) => grantOn(link, lane, bytes),
                complete,
                disagree,
              }),
          ),
      ),
    };
  }

  #open(peer: Peer, { frameBytes, earlyBytes }: Flow): void {
    const { link, routes } = peer;
    const limits: { readonly [type in FrameHeader["type"]]?: number } = {
      data: frameBytes,
      error: longestFailureReport,
    };
    link.open({
      limit: ({ type, stream }) => (stream < routes.length ? (limits[type] ?? 0) : 0),
      target: (header) =>
        header.type === "data" ? routes[header.stream]!.incoming.target(header) : new Uint8Array(header.length),
      torn: (header) => routes[header.stream]!.incoming.forget(header),
      frame: (header, payload) => this.#receive(peer, header, payload),
      closed: (error) => {
        if (error !== undefined) return this.#broken(link.peer, error);
        peer.left = true;
        peer.unwatch();
        const waiting = routes.find(({ waits }) => waits);
        if (waiting !== undefined) this.#suspectLeft(link.peer, waiting.tag);
      },
    });
    peer.unwatch = this.#detector.watch({
      heardAt: () => this.#clock.now() - link.silence(),
      ping: () => link.ping(),
      lost: (silence) =>
        this.#agreement.suspect({
          kind: "lost",
          rank: link.peer,
          tag: 0,
          reason: `nothing was received from it for ${Math.round(silence)} ms`,
        }),
    });
    // Peers send nothing before this grant. A peer that is ready earlier waits for the grant.
    for (const { lane } of routes) grantOn(link, lane, earlyBytes);
  }

  #receive({ link, queue, routes }: Peer, header: FrameHeader, payload: Uint8Array): void {
    const route = routes[header.stream];
    if (route === undefined) throw new Error(`a ${header.type} frame is for lane ${header.stream} of ${routes.length}`);
    if (header.type === "data") {
      route.progress = this.#clock.now();
      route.incoming.frame(header);
    } else if (header.type === "control") queue.grant(header.stream, header.tag);
    else if (header.type === "error") this.#agreement.receive(link.peer, decodeFailureReport(payload));
    else throw new Error(`unexpected ${header.type} frame after the handshake`);
  }

  /** Fails the world because of invalid bytes from a peer, or the end of its connection. */
  #broken(peer: number, error: Error): void {
    if (this.#closed) return;
    const tag = this.#peers.get(peer)?.routes.find(({ waits }) => waits)?.tag ?? 0;
    const kind =
      error instanceof RanksDisagreeError ? "disagree" : error instanceof RevokedPeerError ? "revoked" : "lost";
    this.#agreement.suspect({ kind, rank: peer, tag, reason: error.message });
  }

  #suspectLeft(peer: number, tag: number): void {
    this.#agreement.suspect({ kind: "lost", rank: peer, tag, reason: "it had finished and closed its links" });
  }

  *#routes(): Generator<Route> {
    for (const { routes } of this.#peers.values()) yield* routes;
  }

  #longestWait(): Wait | undefined {
    let longest = this.#currentExpressWait();
    for (const route of this.#routes())
      if (route.waits && (longest === undefined || route.progress < longest.progress)) longest = route;
    return longest;
  }

  #currentExpressWait(): Wait | undefined {
    const found = this.#options.expressWait?.();
    if (found === undefined) return undefined;
    const { count, peer, tag } = found;
    if (this.#expressProgress.count !== count) this.#expressProgress = { count, progress: this.#clock.now() };
    return { peer, tag, progress: this.#expressProgress.progress };
  }

  /** Checks whether the compute thread waits on an express connection for data that can never arrive. */
  #checkExpressWait(): void {
    const found = this.#options.expressWait?.();
    if (found === undefined) return;
    const { peer, tag, lane, ended } = found;
    const { left, routes } = this.#peers.get(peer)!;
    if (ended && left) this.#suspectLeft(peer, tag);
    else if (ended && this.#clock.now() - this.#currentExpressWait()!.progress > endedMilliseconds)
      this.#agreement.suspect({ kind: "lost", rank: peer, tag, reason: "its connection for small messages ended" });
    // The peer sends the same request through its companion, because the peer's operands have a different size.
    else if (routes[lane]!.incoming.earlyTag === tag)
      this.#agreement.suspect({
        kind: "disagree",
        rank: peer,
        tag,
        reason: `rank ${peer} has larger operands for ${this.#nameOf(tag)}; start the same requests on all ranks`,
      });
  }

  #broadcast(report: FailureReport): void {
    const frame: OutgoingFrame = {
      type: "error",
      flags: 0,
      stream: 0,
      sequence: 0,
      tag: 0,
      payload: encodeFailureReport(report),
    };
    for (const { link } of this.#peers.values()) link.write(frame);
  }

  /** Checks for peers that live, but do not join a collective for which this rank waits. */
  #tick(): void {
    const { timeoutMilliseconds, heartbeat = defaultHeartbeat } = this.#options;
    this.#cancelTick = this.#clock.after(Math.min(heartbeat.intervalMilliseconds, timeoutMilliseconds / 4), () => {
      this.#detector.look(); // First, so that a lost peer is not reported as late.
      this.#checkExpressWait();
      const longest = this.#longestWait();
      if (longest !== undefined && this.#clock.now() - longest.progress > timeoutMilliseconds)
        this.#agreement.suspect({
          kind: "timeout",
          rank: longest.peer,
          tag: longest.tag,
          reason: `nothing was received for ${timeoutMilliseconds} ms`,
        });
      if (this.#decision === undefined && !this.#closed) this.#tick();
    });
  }

  #fail(decision: FailureDecision): void {
    this.#decision = decision;
    this.#detector.close();
    this.#cancelTick();
    // First ensure that received bytes are no longer written to memory, because the code notified below may reuse the
    // memory.
    for (const { link } of this.#peers.values()) link.destroy();
    for (const route of this.#routes()) route.reject(() => this.#errorOf(decision, this.#nameOf(route.tag)));
    const error = this.failure()!;
    for (const listener of this.#listeners.splice(0)) listener(error);
  }

  #requireUsable(route: Route): void {
    if (this.#decision !== undefined) throw this.#errorOf(this.#decision, this.#nameOf(route.tag));
    if (this.#closed) throw this.#closedError(route);
  }

  #closedError({ peer, tag }: Route): CollectiveError {
    return new GroupClosedError({ rank: this.#options.rank, peer, collective: this.#nameOf(tag) });
  }

  #errorOf({ kind, rank, reason, reporter }: FailureDecision, collective: string): CollectiveError {
    const own = this.#options.rank;
    if (kind === "revoked") return new PeerRevokedError({ rank: own, peer: rank, collective }, reason);
    // If another rank reports this rank as lost, this rank is still alive, so the reporter counts as lost.
    const context = { rank: own, peer: rank === own && kind !== "timeout" ? reporter : rank, collective };
    if (kind === "timeout") return new CollectiveTimeoutError(context, this.#options.timeoutMilliseconds, reporter);
    const reasonText = reporter === own ? reason : `rank ${reporter} reports about rank ${rank}: ${reason}`;
    return kind === "disagree" ? new RanksDisagreeError(context, reasonText) : new PeerLostError(context, reasonText);
  }

  #nameOf(tag: number): string {
    return this.#options.nameOf?.(tag) ?? `collective ${tag}`;
  }
}

const maxCredit = 2 ** 31; // Credit is a 32-bit field of a frame.

/** Grants a peer credit for `bytes` more bytes on a lane. */
const grantOn = (link: Link, lane: number, bytes: number): void => {
  for (let rest = bytes; rest > 0; rest -= maxCredit)
    link.write({
      type: "control",
      flags: 0,
      stream: lane,
      sequence: 0,
      tag: Math.min(rest, maxCredit),
      payload: empty,
    });
};
