import type { Worker } from "node:worker_threads";
import type { LossKind } from "./errors.ts";
import type { Facts } from "./facts.ts";
import { CompanionThread } from "./companion/companion-thread.ts";
import type { CompanionCommand, CompanionEvent, CompanionInput } from "./companion/companion-messages.ts";
import type { RankAddress, Roster } from "./rendezvous/roster.ts";
import { hasOwnCore } from "./own-core.ts";
import { hostsOf } from "./topology.ts";
import { LocalRanks, type RankMemory } from "./control-block/local-ranks.ts";
import type { ExpressEnd, Preference, WorldConnection } from "./control-block/world-connection.ts";
import { spinsOnOwnCore } from "./thread-world.ts";

export interface ProcessWorldOptions
  extends RankMemory,
    Pick<
      CompanionInput,
      "job" | "build" | "secret" | "tls" | "listen" | "insecure" | "links" | "heartbeat" | "codec" | "emulate"
    > {
  readonly worldSize: number;
  /** Ranks that are threads of this process. */
  readonly ranks: readonly number[];
  /** Maximum time that a rank waits for a peer before the world fails. Default: 60 s. */
  readonly timeoutMilliseconds?: number;
  /** Settings for the choice of algorithms. Hosts come from the roster. */
  readonly preference?: Omit<Preference, "hosts">;
  /**
   * Additional settings that must be equal on all ranks of all processes. Ranks compare these settings when they join.
   */
  readonly facts?: Facts;
  /**
   * Called with one line about a problem that the user should fix, such as a renewed certificate that cannot be used.
   */
  readonly onNote?: (line: string) => void;
}

/** Ranks of one process in a world of several processes. */
export interface ProcessWorld {
  readonly worldSize: number;
  /** Address of the data listener of each rank in `ranks`. */
  readonly addresses: readonly RankAddress[];
  /** Connects to the ranks of all other processes, which must also call `connect`. */
  connect(roster: Roster): Promise<void>;
  /**
   * Returns the connection that `joinWorld` takes for rank `rank` of this process. The connection can be posted to a
   * worker.
   */
  connection(rank: number): WorldConnection;
  /** Watches `worker`, the compute thread of `rank`. Fails the world immediately if the worker ends with an error. */
  watch(rank: number, worker: Worker): void;
  /** Reports to all ranks that a rank of this or another process is lost. */
  reportLost(rank: number, reason: string, kind?: LossKind): void;
  /**
   * Sends a goodbye frame to all peers and stops the companion threads. Call this method when every rank of this
   * process has finished.
   */
  close(): Promise<void>;
}

/**
 * Time limit for closing a companion. Links send their goodbye within a second, so a companion that takes longer hangs.
 */
const closingMilliseconds = 5000;

/**
 * Creates this process's part of a world of several processes. Each rank of this process has a companion thread, which
 * listens for peers immediately. Ranks of this process read each other's memory in place. All other ranks are reached
 * over TCP or TLS.
 *
 * @example
 * const world = await createProcessWorld({ worldSize: 4, ranks: [0, 1], memory, kernels, job, build, secret });
 * const { addresses } = world;
 * const member = await joinRendezvous({ address, ranks: [0, 1], addresses, worldSize: 4, job, build, secret });
 * await world.connect(member.roster);
 * new Worker(file, { workerData: world.connection(0) }); // in the worker: joinWorld(workerData)
 * @throws ArgumentError if the memory is not shared or the module lacks a reduction; InsecureError if it would listen
 * on a non-loopback address without TLS.
 * @example
 * ```ts
 * const world = { worldSize: 1, job: "digits", build: "1", secret: randomSecret() }; // equal in all processes
 * const coordinator = await hostRendezvous(world);
 * const memory = new WebAssembly.Memory({ initial: 1, maximum: 1024, shared: true });
 * const links = await createProcessWorld({ ...world, ranks: [0], memory, kernels: "none" });
 * const { address } = coordinator;
 * const member = await joinRendezvous({ ...world, address, ranks: [0], addresses: links.addresses });
 * await links.connect(member.roster);
 * console.log(joinWorld(links.connection(0)).worldSize); // 1
 * await links.close();
 * await member.close();
 * await coordinator.close();
 * ```
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
  const local = new LocalRanks({ worldSize, ranks, memory, kernels, companionOnly: true, timeoutMilliseconds, facts });
  const { state } = local;
  let hosts: Preference["hosts"];
  const express = new Map<number, readonly ExpressEnd[]>();
  const connection = (rank: number): WorldConnection =>
    local.connection(rank, {
      spins: hosts !== undefined && hasOwnCore({ hosts }, rank) ? spinsOnOwnCore : 0,
      preference: { ...preference, ...(hosts && { hosts }) },
      express: express.get(rank),
    });
  const reportLost = (rank: number, reason: string, kind: LossKind = "lost"): void => {
    state.failLost(rank, 0, reason, kind);
    for (const companion of companions) companion.send({ type: "lost", rank, reason, kind });
  };
  const companions = ranks.map(
    (rank) =>
      new CompanionThread({ ...links, connection: connection(rank) }, (error) => state.failWith(error, 0), onNote),
  );
  const endAll = async (): Promise<void> => {
    state.close();
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
      const command: CompanionCommand = { type: "connect", peers, preference: connection(ranks[0]!).preference };
      const connected = companions.map((companion) => companion.next("connected"));
      for (const companion of companions) companion.send(command);
      for (const [i, event] of (await Promise.all(connected)).entries())
        express.set(ranks[i]!, (event as Extract<CompanionEvent, { type: "connected" }>).express);
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
