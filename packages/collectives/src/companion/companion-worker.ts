import { workerData } from "node:worker_threads";
import { runCompanion } from "./run-companion.ts";
import type { WorldConnection } from "../control-block/world-connection.ts";

// Entry point of a companion thread. `createThreadWorld` starts this thread with the connection of its rank.
runCompanion(workerData as WorldConnection);
