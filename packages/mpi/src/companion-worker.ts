import { parentPort, workerData } from "node:worker_threads";
import { hasOwnCore } from "@skein/collectives/node";
import { laneCount, openGroupState, serveRequests, wasmMessageMemory } from "@skein/collectives/transport";
import type { ErrorKind } from "@skein/tensor-core";
import { type MpiCompanionInput, type MpiCompanionEvent, threadsOfRank } from "./companion-messages.ts";
import { connectMpi } from "./connect.ts";
import { openMpi } from "./world.ts";

// Entry point of the companion thread of a rank over MPI, started by `createMpiWorld` after the process has opened MPI.

const post = (event: MpiCompanionEvent): void => parentPort!.postMessage(event);

const run = async ({ connection, load }: MpiCompanionInput): Promise<void> => {
  const state = openGroupState(connection);
  parentPort!.on("message", () => state.close());
  const world = await openMpi(load);
  const memory = wasmMessageMemory(connection.memory);
  const { timeoutMilliseconds } = connection;
  const nameOf = (tag: number): string => state.nameOf(tag);
  const { communicators, ...laneTransports } = await connectMpi({
    world,
    lanes: laneCount,
    memory,
    timeoutMilliseconds,
    nameOf,
  });
  post({ type: "connected", communicators: world.serialized ? communicators : [] });
  const turn = hasOwnCore(connection.preference, connection.rank, threadsOfRank)
    ? (call: () => void): void => void setImmediate(call)
    : undefined;
  await serveRequests(connection, laneTransports, turn);
};

run(workerData as MpiCompanionInput)
  .catch((error: unknown) => {
    const { kind = "invariant", code = "internal" } = error as { kind?: ErrorKind; code?: string };
    post({ type: "failed", kind, code, message: (error as Error).message });
  })
  .finally(() => parentPort!.close());
