import { hostname } from "node:os";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { ArgumentError } from "@skein/tensor-core";
import { PeerIdentityError, RevokedPeerError } from "../security/errors.ts";
import { RenewableIdentity } from "../security/renewable-identity.ts";
import { requireSecure } from "../security/loopback.ts";
import type { TlsIdentity } from "../security/tls-identity.ts";
import { channelBinding } from "../security/channel-binding.ts";
import { HandshakeDialler, jobKey, type HandshakeMismatch, unprovenBytes } from "../security/handshake.ts";
import { printable } from "../security/printable.ts";
import { checkSecret } from "../security/secret.ts";
import { WireError } from "../wire/errors.ts";
import { ControlConnection, type Ending } from "./control-connection.ts";
import {
  type Announcement,
  announcementCodec,
  controlMessageBytes,
  encodeBounded,
  type Loss,
  reportCodec,
} from "./control-messages.ts";
import { checkMilliseconds, defaultJoinMilliseconds } from "./coordinator-options.ts";
import { dial, explain, TransientError } from "./dial.ts";
import { JoinUnavailableError, RendezvousError } from "./errors.ts";
import {
  joinBytes,
  joinCodec,
  refusalCodec,
  refusalError,
  ranksPerProcess,
  welcomeCodec,
} from "./handshake-messages.ts";
import { BufferedEmitter } from "./buffered-emitter.ts";
import { checkLost, formatRanks } from "../ranks.ts";
import type { RankAddress, Roster } from "./roster.ts";
import { joined, Search, type SearchOptions } from "./search.ts";
import { isUnspecified } from "./unspecified.ts";

/** Identity and settings of a process that joins a rendezvous, and its time limits. */
export interface JoinOptions extends SearchOptions {
  /**
   * Address of the data listener of each rank in `ranks`. A host of 0.0.0.0 or :: is replaced by the local address of
   * the connection to the coordinator.
   */
  readonly addresses: readonly RankAddress[];
  /** Name of the machine. Default: the operating system's host name. */
  readonly hostName?: string;
  readonly worldSize: number;
  readonly job: string;
  readonly build: string;
  /**
   * Secret of the job. The secret is never sent: the coordinator and this process prove that they know the secret, the
   * coordinator first.
   */
  readonly secret: string;
  readonly security?: TlsIdentity;
  /** Interval at which the files of `security` are checked for changes. Default: 5 s. */
  readonly reloadMilliseconds?: number;
  /** Whether to allow connections to non-loopback addresses without `security`. Default: false. */
  readonly insecure?: boolean;
  /**
   * Called with one line about a problem that the user should fix, such as a renewed certificate that cannot be used.
   */
  readonly onNote?: (line: string) => void;
  /**
   * Maximum time to search for the coordinator and a free slot. After admission, the coordinator's deadline applies.
   * Default: `defaultJoinMilliseconds`.
   */
  readonly joinTimeoutMilliseconds?: number;
}

/** Membership of this process after joining. A member does not keep the process alive. */
export interface Member {
  readonly roster: Roster;
  /** Number of this process in the roster. */
  readonly process: number;
  /**
   * Sends a message to the coordinator. Returns false if the coordinator is gone. The message is any msgpack value, up
   * to 64 MiB.
   */
  send(message: unknown): boolean;
  /**
   * Registers a listener for messages. The first listener also receives the messages that arrived before it was
   * registered.
   */
  onMessage(listener: (message: unknown) => void): void;
  /**
   * Reports the loss of a rank detected by a witness, for example a broken data link. The coordinator notifies all
   * processes. Only the first loss counts.
   */
  reportLost(rank: number, reason: string): void;
  /**
   * Registers a listener for the first loss of ranks. If the coordinator is lost, the ranks in the coordinator's
   * process are lost. A listener registered after the loss is also called.
   */
  onLost(listener: (loss: Loss) => void): void;
  /** Sends a goodbye, so that closing does not count as a loss. Takes at most one second. */
  close(): Promise<void>;
}

/**
 * A member in the thread that owns its connection. Also accepts encoded messages, for code that serves another thread.
 */
export interface ThreadedMember extends Member {
  /** Sends an encoded report. */
  relay(payload: Uint8Array): void;
  /** Resolves when the connection has ended for any reason. */
  readonly ended: Promise<void>;
}

const firstPauseMilliseconds = 20;
const longestPauseMilliseconds = 1000;
// Time limit for connecting, and for the response to a hello. A coordinator is busy for a moment when it starts.
const answerMilliseconds = 10_000;

/**
 * Checks the options of a join.
 *
 * @throws ArgumentError or InsecureError.
 */
export const checkJoinOptions = (options: JoinOptions): void => {
  const { address, security, insecure = false, joinTimeoutMilliseconds = defaultJoinMilliseconds } = options;
  check(options);
  checkMilliseconds("joinTimeoutMilliseconds", joinTimeoutMilliseconds);
  requireSecure("this process would join", address.host, { encrypted: security !== undefined, insecure });
};

/**
 * Joins a rendezvous in this thread, which must never be busy for long. See `joinRendezvous` for the result and errors.
 *
 * @param idleMilliseconds returns the time for which the main thread has been blocked. Absent: this thread is the main
 * thread.
 */
export const openMember = async (options: JoinOptions, idleMilliseconds?: () => number): Promise<ThreadedMember> => {
  const { joinTimeoutMilliseconds = defaultJoinMilliseconds } = options;
  checkJoinOptions(options);
  const deadline = performance.now() + joinTimeoutMilliseconds;
  const { security, reloadMilliseconds, onNote } = options;
  const identity =
    security &&
    new RenewableIdentity(security, {
      ...(reloadMilliseconds !== undefined && { reloadMilliseconds }),
      ...(onNote && { onNote }),
    });
  const search = new Search(options, deadline);
  try {
    const member = await seek(options, search, identity, idleMilliseconds);
    void member.ended.then(() => identity?.close());
    return member;
  } catch (error) {
    identity?.close();
    throw error;
  } finally {
    search.end();
  }
};

/** Repeats the attempt to join until the coordinator admits this process, or until the deadline. */
const seek = async (
  options: JoinOptions,
  search: Search,
  identity: RenewableIdentity | undefined,
  idleMilliseconds: (() => number) | undefined,
): Promise<ThreadedMember> => {
  const { deadline } = search;
  const { address, joinTimeoutMilliseconds = defaultJoinMilliseconds } = options;
  let refused: JoinUnavailableError | undefined;
  for (let pause = firstPauseMilliseconds; ; pause = Math.min(2 * pause, longestPauseMilliseconds)) {
    try {
      return await attempt(
        options,
        search,
        identity,
        Math.max(1, Math.min(answerMilliseconds, deadline - performance.now())),
        idleMilliseconds,
      );
    } catch (error) {
      search.found((error as Error).message.split(/[;\n]/)[0]!);
      if (error instanceof JoinUnavailableError) refused = error;
      else if (!(error instanceof TransientError)) throw error;
      // Randomized, so that a thousand refused processes do not retry at the same time.
      const rest = pause * (0.5 + Math.random());
      if (performance.now() + rest >= deadline) {
        if (refused !== undefined) throw refused; // More informative than the timeout of the last attempt.
        throw new RendezvousError(
          "rendezvous-timeout",
          `${formatRanks(options.ranks)} found no coordinator at ${address.host}:${address.port} within ${joinTimeoutMilliseconds / 1000} s (${error.message}); check that its process runs and that the port is open, or raise joinTimeoutMilliseconds (network.joinSeconds of a job)`,
          { cause: error },
        );
      }
      await Promise.race([new Promise((resolve) => setTimeout(resolve, rest)), search.givenUp]);
    }
  }
};

const check = ({ ranks, addresses, hostName = hostname(), worldSize, job, build, secret }: JoinOptions): void => {
  if (
    ranks.length === 0 ||
    ranks.length > ranksPerProcess ||
    !ranks.every((rank) => Number.isInteger(rank) && rank >= 0)
  )
    throw new ArgumentError(
      `a process cannot join with ranks [${ranks.join(", ")}]; pass 1 to ${ranksPerProcess} non-negative integers`,
    );
  if (addresses.length !== ranks.length)
    throw new ArgumentError(
      `${ranks.length} ranks have ${addresses.length} addresses; pass the data listener of each rank`,
    );
  for (const { host, port } of addresses) {
    if (host === "" || host.length > 255 || !(Number.isInteger(port) && port >= 1 && port <= 65_535))
      throw new ArgumentError(
        `${host}:${port} is not an address of a data listener; pass the host and port on which it listens`,
      );
  }
  for (const [name, text, most] of [
    ["hostName", hostName, 255],
    ["job", job, 256],
    ["build", build, 256],
  ] as const) {
    if (!printable.test(text) || text.length > most || (name === "hostName" && text === ""))
      throw new ArgumentError(
        `${name} cannot be ${JSON.stringify(text)}; use printable ASCII of at most ${most} characters`,
      );
  }
  if (!Number.isInteger(worldSize) || worldSize < 1)
    throw new ArgumentError(`worldSize ${worldSize} is not a positive integer; pass the number of ranks, 1 or more`);
  checkSecret(secret);
};

const attempt = async (
  options: JoinOptions,
  search: Search,
  identity: RenewableIdentity | undefined,
  timeoutMilliseconds: number,
  idleMilliseconds: (() => number) | undefined,
): Promise<ThreadedMember> => {
  const dialled = dial(options.address, identity?.current(), timeoutMilliseconds);
  const socket = await Promise.race([dialled, search.givenUp]).catch((error: unknown) => {
    dialled.then(
      (late) => late.destroy(), // The attempt has been aborted.
      () => undefined,
    );
    throw error;
  });
  const member = new JoinedMember(socket, options, idleMilliseconds);
  if (socket instanceof TLSSocket) identity?.guard(socket, (error) => member.distrust(error));
  try {
    await Promise.race([member.join(timeoutMilliseconds, () => search.found(joined)), search.givenUp]);
    return member;
  } catch (error) {
    if (options.signal?.aborted === true) await member.close();
    else member.abandon();
    throw error;
  }
};

class JoinedMember implements ThreadedMember {
  roster: Roster = [];
  process = -1;
  readonly ended: Promise<void>;
  readonly #options: JoinOptions;
  readonly #where: string;
  readonly #connection: ControlConnection;
  readonly #messages = new BufferedEmitter<unknown>();
  readonly #loss = Promise.withResolvers<Loss>();
  readonly #handshake: HandshakeDialler;
  readonly #welcome = Promise.withResolvers<void>();
  readonly #complete = Promise.withResolvers<void>();
  readonly #over = Promise.withResolvers<void>();
  #phase: "challenge" | "welcome" | "joined" = "challenge";
  #coordinatorRanks: readonly number[] = [];

  constructor(socket: Socket, options: JoinOptions, idleMilliseconds: (() => number) | undefined) {
    this.#options = options;
    this.ended = this.#over.promise;
    this.#where = `${options.address.host}:${options.address.port}`;
    this.#welcome.promise.catch(() => {});
    this.#complete.promise.catch(() => {});
    const { job, secret } = options;
    this.#handshake = new HandshakeDialler({
      audience: "control",
      job,
      key: jobKey(secret, job),
      binding: channelBinding(socket),
    });
    this.#connection = new ControlConnection(socket, {
      limit: (type) => {
        if (this.#phase === "joined") return type === "control" ? controlMessageBytes : 0;
        if (type !== this.#phase && type !== "refuse") return 0;
        return this.#phase === "challenge" ? unprovenBytes : joinBytes;
      },
      frame: (type, payload) => {
        if (type === "control" && this.#phase === "joined") this.#handleAnnouncement(announcementCodec.decode(payload));
        else if (type === "refuse" && this.#phase !== "joined")
          this.#welcome.reject(refusalError(refusalCodec.decode(payload)));
        else if (type === "challenge" && this.#phase === "challenge") this.#prove(payload, socket);
        else if (type === "welcome" && this.#phase === "welcome") {
          this.#phase = "joined";
          this.#connection.beat(welcomeCodec.decode(payload).heartbeat, idleMilliseconds);
          this.#welcome.resolve();
        } else
          throw new RendezvousError(
            "control-message",
            `unexpected ${type} frame from ${this.#where}; the process there is not a coordinator`,
          );
      },
      ended: (ending) => this.#ended(ending),
    });
  }

  /** Sends a hello and waits for the roster. */
  async join(timeoutMilliseconds: number, welcomed: () => void): Promise<void> {
    this.#connection.send("hello", this.#handshake.hello());
    const late = setTimeout(
      () =>
        this.#welcome.reject(new TransientError(`no answer to a hello within ${Math.round(timeoutMilliseconds)} ms`)),
      timeoutMilliseconds,
    );
    try {
      await this.#welcome.promise;
    } finally {
      clearTimeout(late);
    }
    welcomed();
    await this.#complete.promise;
    this.#connection.unref();
  }

  /** Closes the connection of a canceled join. */
  abandon(): void {
    this.#connection.break("given up");
  }

  send(message: unknown): boolean {
    return this.#connection.send("control", encodeBounded(reportCodec, { kind: "message", body: message }));
  }

  relay(payload: Uint8Array): void {
    this.#connection.send("control", payload);
  }

  reportLost(rank: number, reason: string): void {
    checkLost(rank, this.#options.worldSize);
    this.#connection.send("control", reportCodec.encode({ kind: "lost", rank, reason }));
  }

  onMessage(listener: (message: unknown) => void): void {
    this.#messages.listen(listener);
  }

  onLost(listener: (loss: Loss) => void): void {
    void this.#loss.promise.then(listener);
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  /** Closes the connection, because the coordinator's certificate was revoked. */
  distrust(error: RevokedPeerError): void {
    this.#connection.break(error.message, error);
  }

  /**
   * Checks the coordinator's proof that it knows the secret. Without a valid proof, no more frames are sent to the
   * coordinator.
   */
  #prove(challenge: Uint8Array, socket: Socket): void {
    let answer: ReturnType<HandshakeDialler["answer"]>;
    try {
      answer = this.#handshake.answer(challenge);
    } catch (error) {
      throw new RendezvousError(
        "control-message",
        `the answer of ${this.#where} is not a challenge; the process there is not a coordinator`,
        { cause: error },
      );
    }
    if ("what" in answer) {
      this.#connection.send("refuse");
      this.#welcome.reject(this.#mismatchError(answer));
      return;
    }
    const { ranks, addresses, worldSize, build, hostName = hostname() } = this.#options;
    const reached = addresses.map(({ host, port }) => ({
      host: isUnspecified(host) ? localAddress(socket) : host,
      port,
    }));
    this.#phase = "welcome";
    this.#connection.send("proof", answer.proof);
    this.#connection.secure(answer.proven);
    this.#connection.send("join", joinCodec.encode({ build, worldSize, ranks, addresses: reached, hostName }));
  }

  #mismatchError({ what, own, peer }: HandshakeMismatch): Error {
    return what === "secret"
      ? new PeerIdentityError(
          `the process at ${this.#where} claims to be the coordinator, but does not know this job's secret; give every process the same SKEIN_SECRET, and check that the address is right and that no other program uses the port`,
        )
      : new WireError(
          "protocol-version",
          `this process uses version ${own} of the protocol, the coordinator ${peer}, and only adjacent minor versions are compatible; run the same version of Skein on all hosts`,
        );
  }

  #handleAnnouncement(announcement: Announcement): void {
    switch (announcement.kind) {
      case "complete":
        this.roster = announcement.roster;
        this.process = announcement.process;
        this.#coordinatorRanks = announcement.coordinatorRanks;
        this.#complete.resolve();
        break;
      case "incomplete":
        this.#complete.reject(new RendezvousError(announcement.code, announcement.message));
        break;
      case "lost":
        // Only the first loss counts.
        this.#loss.resolve({ ranks: announcement.ranks, reason: announcement.reason, revoked: announcement.revoked });
        break;
      case "message":
        this.#messages.emit(announcement.body);
        break;
    }
  }

  #ended(ending: Ending): void {
    this.#over.resolve();
    const reason = ending.how === "broken" ? ending.reason : "it said goodbye";
    this.#welcome.reject(this.#unanswered(ending, reason));
    const revoked = ending.how === "broken" && ending.error instanceof RevokedPeerError;
    const lost = `the coordinator at ${this.#where} was lost before all ranks had joined: ${reason}; start the job again`;
    this.#complete.reject(revoked ? new RevokedPeerError(lost) : new RendezvousError("coordinator-lost", lost));
    if (ending.how === "broken" && this.roster.length > 0)
      this.#loss.resolve({
        ranks: this.#coordinatorRanks,
        reason: `the coordinator at ${this.#where} was lost: ${reason}`,
        ...(revoked && { revoked }),
      });
  }

  /**
   * Returns the error for a hello without a response. Errors of a coordinator that may not be running yet are transient
   * and retried.
   */
  #unanswered(ending: Ending, reason: string): Error {
    const error = ending.how === "broken" ? ending.error : undefined;
    if (error instanceof WireError && error.code === "not-a-frame")
      return new RendezvousError(
        "not-a-coordinator",
        `the process at ${this.#where} is not a coordinator of Skein: ${reason}; check that the port is right, and that both sides use TLS or neither`,
        { cause: error },
      );
    if (error instanceof WireError && error.code === "frame-truncated") return new TransientError(reason);
    if (error instanceof WireError || error instanceof RendezvousError) return error;
    const explained = error instanceof Error ? explain(error, this.#where) : undefined;
    if (explained !== undefined && !(explained instanceof TransientError)) return explained;
    return new TransientError(
      `it closed the connection without an answer, for example because only one side uses TLS: ${reason}`,
    );
  }
}

const localAddress = (socket: Socket): string => (socket.localAddress ?? "127.0.0.1").replace(/^::ffff:(?=\d+\.)/, "");
