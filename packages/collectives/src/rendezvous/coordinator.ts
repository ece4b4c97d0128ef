import { suspectMilliseconds } from "../failure-detection/heartbeat.ts";
import type { Socket } from "node:net";
import { WireError } from "../wire/errors.ts";
import { RevokedPeerError } from "../security/errors.ts";
import type { Unproven } from "../security/unproven-connections.ts";
import { JoinHandshake, type Step } from "./join-handshake.ts";
import { ControlConnection, type Ending } from "./control-connection.ts";
import { ControlListener } from "./control-listener.ts";
import {
  type Announcement,
  announcementCodec,
  controlMessageBytes,
  encodeBounded,
  type IncompleteCode,
  type Loss,
  reportCodec,
} from "./control-messages.ts";
import {
  type CheckedRendezvousOptions,
  checkRendezvousOptions,
  type RendezvousEvent,
  type RendezvousOptions,
} from "./coordinator-options.ts";
import { RendezvousError } from "./errors.ts";
import { type JoinRequest, type Refusal, refusalCodec, welcomeCodec } from "./handshake-messages.ts";
import { BufferedEmitter } from "./buffered-emitter.ts";
import { Membership } from "./membership.ts";
import { checkLost, checkProcess, formatRanks } from "../ranks.ts";
import type { RankAddress, Roster } from "./roster.ts";
import { RejectionLog } from "./rejection-log.ts";
import { isUnspecified } from "./unspecified.ts";
import { WaitNotice } from "./wait-notice.ts";

/** A message received by the coordinator, with the process and ranks that sent the message. */
export interface MemberMessage {
  /** Number of the process in the roster. */
  readonly process: number;
  readonly ranks: readonly number[];
  readonly message: unknown;
}

/**
 * Coordinator of a job's processes: sends each process the addresses of all ranks, forwards messages, and reports
 * losses.
 */
export interface Coordinator {
  readonly address: RankAddress;
  /**
   * Resolves when every rank has joined.
   *
   * @throws RendezvousError `rendezvous-timeout`, which names the missing ranks.
   */
  readonly ready: Promise<Roster>;
  /**
   * Registers a listener for messages. The first listener also receives the messages that arrived before it was
   * registered.
   */
  onMessage(listener: (message: MemberMessage) => void): void;
  /**
   * Sends a message to one process, by its number in the roster. Returns false if the process is gone. The message is
   * any msgpack value, up to 64 MiB.
   */
  send(process: number, message: unknown): boolean;
  broadcast(message: unknown): void;
  /**
   * Reports the loss of a rank detected by a witness, for example the launcher that saw the rank's process end. Only
   * the first loss counts.
   */
  reportLost(rank: number, reason: string): void;
  /**
   * Registers a listener for the first loss of ranks, reported by any process. All processes are notified before the
   * listener is called. A listener registered after the loss is also called.
   */
  onLost(listener: (loss: Loss) => void): void;
  /**
   * Sends a goodbye to all processes and stops listening. Takes at most one second.
   *
   * @param stopped reason for stopping the run before all ranks have joined. Joined processes then end with
   * `rendezvous-stopped`, which does not count as a failure. Absent: joined processes end with a failure.
   */
  close(stopped?: string): Promise<void>;
}

/**
 * A coordinator in the thread that owns its connections. Also accepts encoded messages, for code that serves another
 * thread.
 */
export interface ThreadedCoordinator extends Coordinator {
  /** Sends an encoded announcement to one process, or to all processes if `process` is absent. */
  relay(payload: Uint8Array, process?: number): void;
  /** Registers a listener that receives the number of each process that has ended or was lost. */
  onGone(listener: (process: number) => void): void;
}

const isOtherVersion = (error: unknown): boolean => error instanceof WireError && error.code === "protocol-version";

const nameOf = ({ ranks, hostName }: JoinRequest): string => `${formatRanks(ranks)} on ${hostName}`;

const seconds = (milliseconds: number): string => `${Number((milliseconds / 1000).toFixed(1))} s`;

/** Connection to one process. */
interface MemberConnection {
  readonly connection: ControlConnection;
  readonly name: string;
}

/**
 * Hosts a rendezvous in this thread, which must never be busy for long.
 *
 * @param idleMilliseconds returns the time for which the main thread has been blocked. Absent: this thread is the main
 * thread.
 * @throws ArgumentError, InsecureError, or the system's error if the port is taken.
 */
export const openCoordinator = async (
  options: RendezvousOptions,
  idleMilliseconds?: () => number,
): Promise<ThreadedCoordinator> => {
  const checked = checkRendezvousOptions(options);
  const coordinator = new HostedRendezvous(checked, idleMilliseconds);
  await coordinator.listen();
  return coordinator;
};

class HostedRendezvous implements ThreadedCoordinator {
  readonly ready: Promise<Roster>;
  readonly #options: CheckedRendezvousOptions;
  readonly #listener: ControlListener;
  readonly #membership: Membership<MemberConnection>;
  readonly #members = new Set<MemberConnection>();
  readonly #messages = new BufferedEmitter<MemberMessage>();
  readonly #departures = new BufferedEmitter<number>();
  readonly #loss = Promise.withResolvers<Loss>();
  readonly #rejections = new RejectionLog((event) => this.#options.onEvent(event));
  readonly #idleMilliseconds: (() => number) | undefined;
  readonly #deadline: NodeJS.Timeout;
  readonly #notice: WaitNotice;
  readonly #settle: { readonly resolve: (roster: Roster) => void; readonly reject: (error: RendezvousError) => void };
  #address: RankAddress = { host: "", port: 0 };
  #numbers: MemberConnection[] = [];
  #state: "joining" | "running" | "closed" = "joining";
  #lost = false;

  constructor(options: CheckedRendezvousOptions, idleMilliseconds: (() => number) | undefined) {
    this.#options = options;
    this.#idleMilliseconds = idleMilliseconds;
    this.#membership = new Membership(options);
    const { promise, resolve, reject } = Promise.withResolvers<Roster>();
    promise.catch(() => {}); // Callers that await `ready` get the error; a promise without callers must not end the process.
    this.ready = promise;
    this.#settle = { resolve, reject };
    this.#listener = new ControlListener(
      options,
      (socket, unproven) => this.#receive(socket, unproven),
      (reason) => this.#rejections.note("dropped", reason),
    );
    this.#deadline = setTimeout(() => this.#giveUp(), options.joinTimeoutMilliseconds);
    const until = performance.now() + options.joinTimeoutMilliseconds;
    this.#notice = new WaitNotice(
      options.notice,
      () => {
        const { host, port } = this.#address;
        const where = isUnspecified(host) ? `port ${port} of this machine` : `${host}:${port}`;
        const others = this.#membership.missing.filter((rank) => !options.ranks.includes(rank));
        if (others.length === 0) return undefined; // Only ranks of this process are missing.
        const state = this.#membership.nameMissing(`to join at ${where}`, others);
        return { state, line: `waiting for ${state}; giving up in ${Math.ceil((until - performance.now()) / 1000)} s` };
      },
      (line) => this.#event("waiting", line),
    );
  }

  /** Listening address; still available after closing. */
  get address(): RankAddress {
    return this.#address;
  }

  async listen(): Promise<void> {
    try {
      this.#address = await this.#listener.listen();
    } catch (error) {
      clearTimeout(this.#deadline);
      this.#notice.stop();
      throw error;
    }
  }

  onMessage(listener: (message: MemberMessage) => void): void {
    this.#messages.listen(listener);
  }

  onLost(listener: (loss: Loss) => void): void {
    void this.#loss.promise.then(listener);
  }

  send(process: number, message: unknown): boolean {
    const payload = encodeBounded(announcementCodec, { kind: "message", body: message });
    checkProcess(process, this.#numbers.length);
    return this.#numbers[process]!.connection.send("control", payload);
  }

  broadcast(message: unknown): void {
    this.#announce(encodeBounded(announcementCodec, { kind: "message", body: message }));
  }

  relay(payload: Uint8Array, process?: number): void {
    if (process === undefined) this.#announce(payload);
    else this.#numbers[process]?.connection.send("control", payload);
  }

  onGone(listener: (process: number) => void): void {
    this.#departures.listen(listener);
  }

  reportLost(rank: number, reason: string): void {
    this.#lose([rank], reason);
  }

  async close(stopped?: string): Promise<void> {
    if (this.#state === "joining") {
      const before = `before ${formatRanks(this.#membership.missing)} of ${this.#options.worldSize} had joined`;
      if (stopped === undefined) this.#fail("rendezvous-failed", `the rendezvous was closed ${before}`);
      else this.#fail("rendezvous-stopped", `the run was stopped ${before}: ${stopped}`);
    }
    this.#state = "closed";
    this.#rejections.flush();
    await this.#listener.stop(() => Promise.all([...this.#members].map(({ connection }) => connection.close())));
  }

  #event(kind: RendezvousEvent["kind"], message: string): void {
    this.#options.onEvent({ kind, message });
  }

  #announce(payload: Uint8Array): void {
    for (const { connection } of this.#members) connection.send("control", payload);
  }

  /**
   * Handles a new connection. Before authentication, a connection has limited time and memory, and only one attempt to
   * prove that it knows the secret.
   */
  #receive(socket: Socket, unproven: Unproven): void {
    const from = `a connection from ${socket.remoteAddress ?? "unknown"}:${socket.remotePort ?? 0}`;
    const handshake = new JoinHandshake(socket, this.#options);
    let member: MemberConnection | undefined;
    let proven = false;
    const patience = setTimeout(
      () => connection.break(`it did not prove its identity within ${this.#options.handshakeTimeoutMilliseconds} ms`),
      this.#options.handshakeTimeoutMilliseconds,
    ).unref();
    const advance = (step: Step): void => {
      switch (step.kind) {
        case "challenge":
          unproven.spoke();
          connection.send("challenge", step.payload);
          break;
        case "proven":
          proven = true;
          unproven.leave();
          connection.secure(step.seals);
          break;
        case "join":
          clearTimeout(patience);
          member = this.#admit(step.request, connection);
          break;
        case "refuse":
          this.#refuse(step.refusal, step.request === undefined ? from : nameOf(step.request), connection, proven);
          break;
      }
    };
    const connection = new ControlConnection(socket, {
      limit: (type) => {
        if (member === undefined) return handshake.limit(type);
        return type === "control" && this.#state === "running" ? controlMessageBytes : 0;
      },
      frame: (type, payload) => {
        if (member === undefined) advance(handshake.take(type, payload));
        else if (type === "control" && this.#state === "running") this.#takeReport(member, payload);
        else throw new RendezvousError("control-message", `unexpected ${type} frame`);
      },
      suspected: (isSuspected) => {
        const { heartbeat } = this.#options;
        const what = isSuspected
          ? `nothing was heard from it for ${seconds(suspectMilliseconds(heartbeat))}, perhaps because its machine is stopped or cut off; it counts as lost after ${seconds(heartbeat.lossMilliseconds)}`
          : "it is heard again";
        if (member !== undefined) this.#event("silent", `${member.name}: ${what}`);
      },
      // The frame has this process's protocol version, so that the peer also detects the mismatch.
      farewell: (error) => (isOtherVersion(error) ? "refuse" : undefined),
      ended: (ending) => {
        clearTimeout(patience);
        unproven.leave();
        if (member !== undefined) this.#memberEnded(member, ending);
        else if (ending.how === "broken")
          this.#rejections.note(
            isOtherVersion(ending.error) ? "refused" : "dropped",
            `${from}: ${unproven.evicted ? "displaced by other connections before it had proven its identity" : ending.reason}`,
          );
      },
    });
    this.#listener.guard(socket, (error) => {
      // Notify all members first, including the expelled member, which may be an honest process on a host compromised
      // by an attacker.
      if (member !== undefined && this.#state === "running")
        this.#lose(this.#membership.ranksOf(member), error.message, true);
      connection.expel(error.message, error);
    });
  }

  /**
   * Admits an authenticated process to the requested ranks if they are available. Otherwise refuses the process and
   * returns undefined.
   */
  #admit(request: JoinRequest, connection: ControlConnection): MemberConnection | undefined {
    if (connection.over || this.#state === "closed") return undefined;
    const member: MemberConnection = { connection, name: nameOf(request) };
    const refusal = this.#membership.admit(member, request);
    if (refusal !== undefined) {
      this.#refuse(refusal, member.name, connection, true);
      return undefined;
    }
    this.#members.add(member);
    connection.send("welcome", welcomeCodec.encode({ heartbeat: this.#options.heartbeat }));
    connection.beat(this.#options.heartbeat, this.#idleMilliseconds);
    this.#event("joined", member.name);
    if (this.#membership.complete) this.#begin();
    return member;
  }

  #refuse(refusal: Refusal, name: string, connection: ControlConnection, proven: boolean): void {
    connection.send("refuse", refusalCodec.encode(refusal));
    const line = `${name}: ${refusal.message}`;
    if (proven) this.#event("refused", line);
    else this.#rejections.note("refused", line);
    void connection.close();
  }

  /** Starts the world when all ranks have joined. */
  #begin(): void {
    if (this.#state !== "joining" || !this.#membership.complete) return;
    this.#state = "running";
    clearTimeout(this.#deadline);
    this.#notice.stop();
    this.#numbers = this.#membership.processes();
    const roster = this.#membership.roster();
    this.#numbers.forEach(({ connection }, process) =>
      connection.send(
        "control",
        announcementCodec.encode({ kind: "complete", roster, process, coordinatorRanks: this.#options.ranks }),
      ),
    );
    this.#listener.unref();
    for (const { connection } of this.#members) connection.unref();
    this.#event("complete", `${roster.length} ranks in ${this.#numbers.length} processes`);
    this.#settle.resolve(roster);
  }

  #giveUp(): void {
    this.#fail("rendezvous-timeout", this.#membership.describeMissing(this.#options.joinTimeoutMilliseconds));
    void this.close();
  }

  /** Fails the rendezvous, because the world cannot be completed. */
  #fail(code: IncompleteCode, message: string): void {
    this.#state = "closed";
    clearTimeout(this.#deadline);
    this.#notice.stop();
    this.#settle.reject(new RendezvousError(code, message));
    this.#announce(announcementCodec.encode({ kind: "incomplete", code, message }));
  }

  #takeReport(member: MemberConnection, payload: Uint8Array): void {
    const report = reportCodec.decode(payload);
    if (report.kind === "lost") this.#lose([report.rank], report.reason);
    else
      this.#messages.emit({
        process: this.#numbers.indexOf(member),
        ranks: this.#membership.ranksOf(member),
        message: report.body,
      });
  }

  #memberEnded(member: MemberConnection, ending: Ending): void {
    const reason = ending.how === "broken" ? ending.reason : undefined;
    this.#members.delete(member);
    if (this.#state === "joining") {
      // If a process sends a goodbye, the process and the run were asked to end. A lost process may be restarted, and
      // join in time.
      if (reason === undefined)
        return void this.close(`${formatRanks(this.#membership.ranksOf(member))} was asked to end`);
      this.#membership.leave(member, reason);
      this.#event("left", `${member.name}: ${reason}`);
    } else if (this.#state === "running") {
      this.#departures.emit(this.#numbers.indexOf(member));
      if (reason === undefined) this.#event("left", member.name);
      else if (!(ending.how === "broken" && ending.error instanceof RevokedPeerError))
        this.#lose(this.#membership.ranksOf(member), reason);
    }
  }

  #lose(ranks: readonly number[], reason: string, revoked = false): void {
    const { worldSize } = this.#options;
    for (const rank of ranks) checkLost(rank, worldSize);
    if (this.#state === "closed") return;
    if (this.#state === "joining") {
      this.#fail(
        "rendezvous-failed",
        `${formatRanks(ranks)} of ${worldSize} was lost before all had joined: ${reason}`,
      );
      void this.close();
      return;
    }
    this.#event("lost", `${formatRanks(ranks)}: ${reason}${this.#lost ? " (after the first loss)" : ""}`);
    if (this.#lost) return;
    this.#lost = true;
    const loss: Loss = { ranks, reason, ...(revoked && { revoked }) };
    this.#announce(announcementCodec.encode({ kind: "lost", ...loss } satisfies Announcement));
    this.#loss.resolve(loss);
  }
}
