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
import { StrangerLog } from "./stranger-log.ts";
import { isUnspecified } from "./unspecified.ts";
import { WaitNotice } from "./wait-notice.ts";

/** A message with its sender. */
export interface MemberMessage {
  /** Number of the process in the roster. */
  readonly process: number;
  readonly ranks: readonly number[];
  readonly message: unknown;
}

/**
 * The meeting point of a job's processes. It tells them where the others are, passes messages, and says who was lost.
 */
export interface Coordinator {
  readonly address: RankAddress;
  /**
   * Resolves when every rank has joined.
   *
   * @throws RendezvousError `rendezvous-timeout`, which names the ranks that did not.
   */
  readonly ready: Promise<Roster>;
  /** Messages that came before the first listener wait for it. */
  onMessage(listener: (message: MemberMessage) => void): void;
  /**
   * Send to one process, by its number in the roster. Returns false where it is gone. The message is anything msgpack
   * holds, up to 64 MiB.
   */
  send(process: number, message: unknown): boolean;
  broadcast(message: unknown): void;
  /** Say that a rank is gone, from a witness such as the launcher that saw its process end. The first loss stands. */
  reportLost(rank: number, reason: string): void;
  /**
   * The first loss of ranks, whoever noticed it; all processes are told before. Every listener hears it, however late
   * it comes.
   */
  onLost(listener: (loss: Loss) => void): void;
  /**
   * Say goodbye to all and stop listening. Takes a second at most.
   *
   * @param stopped why, where the run is to stop before all have joined: those who have end with `rendezvous-stopped`,
   * and none need look for a fault.
   */
  close(stopped?: string): Promise<void>;
}

/** A coordinator in the thread that holds its connections: what serves another thread takes part in messages here. */
export interface ThreadedCoordinator extends Coordinator {
  /** Send an announcement that is encoded already, to one process or to all. */
  relay(payload: Uint8Array, process?: number): void;
  /** Told the number of each process that has ended or was lost. */
  onGone(listener: (process: number) => void): void;
}

const isOtherVersion = (error: unknown): boolean => error instanceof WireError && error.code === "protocol-version";

const nameOf = ({ ranks, hostName }: JoinRequest): string => `${formatRanks(ranks)} on ${hostName}`;

const seconds = (milliseconds: number): string => `${Number((milliseconds / 1000).toFixed(1))} s`;

/** One process at the other end of a connection. */
interface MemberConnection {
  readonly connection: ControlConnection;
  readonly name: string;
}

/**
 * Host a rendezvous in this thread, which must never be busy for long.
 *
 * @param idleMilliseconds for how long the thread that this one serves has done nothing.
 * @throws ArgumentError, InsecureError, or the system's error when the port is taken.
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
  readonly #gone = new BufferedEmitter<number>();
  readonly #loss = Promise.withResolvers<Loss>();
  readonly #strangers = new StrangerLog((event) => this.#options.onEvent(event));
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
    promise.catch(() => {}); // whoever awaits `ready` hears it; that nobody does must not end the process
    this.ready = promise;
    this.#settle = { resolve, reject };
    this.#listener = new ControlListener(
      options,
      (socket, unproven) => this.#receive(socket, unproven),
      (reason) => this.#strangers.note("dropped", reason),
    );
    this.#deadline = setTimeout(() => this.#giveUp(), options.joinTimeoutMilliseconds);
    const until = performance.now() + options.joinTimeoutMilliseconds;
    this.#notice = new WaitNotice(
      options.notice,
      () => {
        const { host, port } = this.#address;
        const where = isUnspecified(host) ? `port ${port} of this machine` : `${host}:${port}`;
        const others = this.#membership.missing.filter((rank) => !options.ranks.includes(rank));
        if (others.length === 0) return undefined; // but for those of this process itself, which may be slow
        const state = this.#membership.nameMissing(`to join at ${where}`, others);
        return { state, line: `waiting for ${state}; giving up in ${Math.ceil((until - performance.now()) / 1000)} s` };
      },
      (line) => this.#event("waiting", line),
    );
  }

  /** Where it listens, or did. */
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
    this.#gone.listen(listener);
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
    this.#strangers.flush();
    await this.#listener.stop(() => Promise.all([...this.#members].map(({ connection }) => connection.close())));
  }

  #event(kind: RendezvousEvent["kind"], message: string): void {
    this.#options.onEvent({ kind, message });
  }

  #announce(payload: Uint8Array): void {
    for (const { connection } of this.#members) connection.send("control", payload);
  }

  /** A stranger has come. It gets little time, little memory, and one try. */
  #receive(socket: Socket, unproven: Unproven): void {
    const from = `a connection from ${socket.remoteAddress ?? "unknown"}:${socket.remotePort ?? 0}`;
    const handshake = new JoinHandshake(socket, this.#options);
    let member: MemberConnection | undefined;
    let proven = false;
    const patience = setTimeout(
      () => connection.break(`it did not prove who it is within ${this.#options.handshakeTimeoutMilliseconds} ms`),
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
        else throw new RendezvousError("control-message", `a ${type} frame came where none is due`);
      },
      suspected: (isSuspected) => {
        const { heartbeat } = this.#options;
        const what = isSuspected
          ? `nothing was heard from it for ${seconds(suspectMilliseconds(heartbeat))}, perhaps because its machine is stopped or cut off; it counts as lost after ${seconds(heartbeat.lossMilliseconds)}`
          : "it is heard again";
        if (member !== undefined) this.#event("silent", `${member.name}: ${what}`);
      },
      // In our version, so that its side sees what this one has seen.
      farewell: (error) => (isOtherVersion(error) ? "refuse" : undefined),
      ended: (ending) => {
        clearTimeout(patience);
        unproven.leave();
        if (member !== undefined) this.#memberEnded(member, ending);
        else if (ending.how === "broken")
          this.#strangers.note(
            isOtherVersion(ending.error) ? "refused" : "dropped",
            `${from}: ${unproven.evicted ? "others came before it had proven who it is" : ending.reason}`,
          );
      },
    });
    this.#listener.guard(socket, (error) => {
      // All are told before, who has it too: it may be an honest process on a host that somebody else has got into.
      if (member !== undefined && this.#state === "running")
        this.#lose(this.#membership.ranksOf(member), error.message, true);
      connection.expel(error.message, error);
    });
  }

  /** Give a process that has proven itself the places that it asks for, if they can be had. */
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
    else this.#strangers.note("refused", line);
    void connection.close();
  }

  /** Everyone is here. */
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

  /** The world will not be complete. */
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
      // Who says goodbye was asked to end, and so is the run. Who is lost may be started again, and come in time.
      if (reason === undefined)
        return void this.close(`${formatRanks(this.#membership.ranksOf(member))} was asked to end`);
      this.#membership.leave(member, reason);
      this.#event("left", `${member.name}: ${reason}`);
    } else if (this.#state === "running") {
      this.#gone.emit(this.#numbers.indexOf(member));
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
