import type { Worker } from "node:worker_threads";
import { ArgumentError, SkeinError, type WasmMemory, type WasmModule } from "@skein/tensor-core";
import type { LossKind } from "./errors.ts";
import type { Facts } from "./facts.ts";
import type { CompanionInput, CompanionNews, CompanionOrder } from "./process-companion.ts";
import type { RankAddress, Roster } from "./rendezvous/roster.ts";
import { hasOwnCore } from "./own-core.ts";
import { hostsOf } from "./topology.ts";
import { Control, controlBytes, type Preference, type WorldConnection } from "./threads/control.ts";
import { startThread } from "./start-thread.ts";
import { spinsOnOwnCore } from "./thread-world.ts";
import { checkKernels } from "./wasm-arithmetic.ts";

export interface ProcessWorldOptions
  extends Pick<CompanionInput, "job" | "build" | "secret" | "tls" | "listen" | "insecure" | "links" | "heartbeat" | "codec" | "emulate"> {
  readonly worldSize: number;
  /** Ranks that are threads of this process. */
  readonly ranks: readonly number[];
  /** The shared memory in which all regions of all requests of this process lie. */
  readonly memory: WasmMemory;
  /** Module with the reductions (see `requiredExports`); "none" says that plain loops will do. */
  readonly kernels: WasmModule | "none";
  /** How long a rank waits for a peer before the world fails. Default: 60 s. */
  readonly timeoutMilliseconds?: number;
  /** What algorithms are chosen by; hosts are taken from the roster. */
  readonly preference?: Omit<Preference, "hosts">;
  /** What else must be the same on all ranks of all processes; they compare it when they join. */
  readonly facts?: Facts;
  /** Told, in a line, of what people should see to: renewed certificates that cannot be used. */
  readonly onNote?: (line: string) => void;
}

/** The ranks that one process holds, in a world of several processes. */
export interface ProcessWorld {
  readonly worldSize: number;
  /** Where each of `ranks` listens for data. */
  readonly addresses: readonly RankAddress[];
  /** Link with the ranks of all other processes, which do the same. */
  connect(roster: Roster): Promise<void>;
  /** What rank `rank` of this process passes to `joinWorld`; may be posted to a worker. */
  connection(rank: number): WorldConnection;
  /** Fail the world at once when `worker`, the compute thread of `rank`, ends with an error. */
  watch(rank: number, worker: Worker): void;
  /** Tell everyone that a rank, of this process or another, is gone. */
  reportLost(rank: number, reason: string, kind?: LossKind): void;
  /** Say goodbye to all peers and end the companions. Call when every rank of this process has finished. */
  close(): Promise<void>;
}

/** A companion thread, and what it has said. */
class Companion {
  readonly listening: Promise<RankAddress>;
  readonly ended: Promise<void>;
  private readonly worker: Worker;
  private readonly waiting: {
    readonly type: CompanionNews["type"];
    readonly resolve: (news: CompanionNews) => void;
    readonly reject: (error: Error) => void;
  }[] = [];
  private failure: Error | undefined;

  constructor(input: CompanionInput, onFailure: (error: Error) => void, onNote: (line: string) => void) {
    this.worker = startThread(() => new URL("./process-companion-worker.ts", import.meta.url), {
      workerData: input,
      name: `companion ${input.connection.rank}`,
    });
    this.listening = this.next("listening").then((news) => (news as Extract<CompanionNews, { type: "listening" }>).address);
    this.listening.catch(() => undefined); // `connect` or `createProcessWorld` tells
    const fail = (error: Error): void => {
      this.failure ??= error;
      for (const { reject } of this.waiting.splice(0)) reject(error);
      onFailure(error);
    };
    this.worker.on("message", (news: CompanionNews) => {
      if (news.type === "note") return onNote(news.line);
      if (news.type === "failed") return fail(new SkeinError(news.kind, news.code, news.message));
      const at = this.waiting.findIndex(({ type }) => type === news.type);
      if (at >= 0) this.waiting.splice(at, 1)[0]!.resolve(news);
    });
    this.worker.once("error", (error) => fail(error as Error));
    this.ended = new Promise((resolve) => {
      this.worker.once("exit", () => {
        for (const { reject } of this.waiting.splice(0)) reject(this.failure ?? new Error("the companion ended"));
        resolve();
      });
    });
  }

  next(type: CompanionNews["type"]): Promise<CompanionNews> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    return new Promise((resolve, reject) => this.waiting.push({ type, resolve, reject }));
  }

  tell(order: CompanionOrder): void {
    this.worker.postMessage(order);
  }

  async end(graceMilliseconds: number): Promise<void> {
    this.tell({ type: "end" });
    const timer = setTimeout(() => void this.worker.terminate(), graceMilliseconds);
    await this.ended;
    clearTimeout(timer);
  }
}

/** Links say goodbye within a second; a companion that takes longer hangs. */
const closingMilliseconds = 5000;

/**
 * Hold ranks of a world that several processes make up: a companion thread per rank, which listens for the others at once. Ranks of this
 * process read each other's memory in place; all others are reached by TCP or TLS.
 *
 * @example
 * const world = await createProcessWorld({ worldSize: 4, ranks: [0, 1], memory, kernels, job, build, secret });
 * const member = await joinRendezvous({ address, ranks: [0, 1], addresses: world.addresses, worldSize: 4, job, build, secret });
 * await world.connect(member.roster);
 * new Worker(file, { workerData: world.connection(0) }); // there: joinWorld(workerData)
 * @throws ArgumentError when the memory is not shared or the module lacks a reduction; InsecureError off loopback without TLS.
 */
export const createProcessWorld = async (options: ProcessWorldOptions): Promise<ProcessWorld> => {
  const {
    worldSize,
    ranks,
    memory,
    kernels,
    timeoutMilliseconds = 60_000,
    preference = {},
    facts,
    onNote = () => undefined,
    ...links
  } = options;
  if (!(memory.buffer instanceof SharedArrayBuffer))
    throw new ArgumentError("ranks of a process need a shared WebAssembly.Memory; create it with { shared: true }");
  if (ranks.length === 0 || ranks.some((rank) => !Number.isInteger(rank) || rank < 0 || rank >= worldSize))
    throw new ArgumentError(`ranks ${ranks.join(", ")} are not in a world of ${worldSize}; use 0 to ${worldSize - 1}`);
  if (kernels !== "none") checkKernels(kernels);
  const control = new SharedArrayBuffer(controlBytes(worldSize, ranks.length));
  let hosts: Preference["hosts"];
  const connection = (rank: number): WorldConnection => {
    if (!ranks.includes(rank)) throw new ArgumentError(`rank ${rank} is not of this process, which holds ${ranks.join(", ")}`);
    return {
      control,
      memory,
      kernels,
      rank,
      worldSize,
      localRanks: ranks,
      companionOnly: true,
      timeoutMilliseconds,
      spins: hosts !== undefined && hasOwnCore({ hosts }, rank) ? spinsOnOwnCore : 0,
      preference: { ...preference, ...(hosts && { hosts }) },
      ...(facts && { facts }),
    };
  };
  const own = new Control(connection(ranks[0]!));
  const reportLost = (rank: number, reason: string, kind: LossKind = "lost"): void => {
    own.failLost(rank, 0, reason, kind);
    for (const companion of companions) companion.tell({ type: "lost", rank, reason, kind });
  };
  const companions = ranks.map(
    (rank) => new Companion({ ...links, connection: connection(rank) }, (error) => own.failWith(error, 0), onNote),
  );
  const endAll = async (): Promise<void> => {
    own.close();
    await Promise.all(companions.map((companion) => companion.end(closingMilliseconds)));
  };
  let addresses: readonly RankAddress[];
  try {
    addresses = await Promise.all(companions.map(({ listening }) => listening));
  } catch (error) {
    await endAll();
    throw error;
  }

  return {
    worldSize,
    addresses,
    connect: async (roster) => {
      hosts = hostsOf(roster.map(({ hostName }) => hostName));
      const peers = roster.filter(({ rank }) => !ranks.includes(rank));
      const order: CompanionOrder = { type: "connect", peers, preference: connection(ranks[0]!).preference };
      const connected = companions.map((companion) => companion.next("connected"));
      for (const companion of companions) companion.tell(order);
      await Promise.all(connected);
    },
    connection,
    watch: (rank, worker) => {
      worker.once("exit", (code) => {
        if (code !== 0) reportLost(rank, "its thread ended");
      });
    },
    reportLost,
    close: endAll,
  };
};
