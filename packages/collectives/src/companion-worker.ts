import { workerData } from "node:worker_threads";
import { runCompanion } from "./threads/companion.ts";
import type { WorldConnection } from "./threads/control.ts";

// Entry of a companion thread; `createThreadWorld` starts it with the connection of its rank.
runCompanion(workerData as WorldConnection);
