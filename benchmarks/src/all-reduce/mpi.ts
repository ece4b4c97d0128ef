// All-reduce through a communicator whose world is MPI's, as in a job: by MPI's own all-reduce if summands may be added
// in any order, and on more than two ranks by our schedules over MPI messages if summands must be added in rank order.
// SKEIN_MPI_ADDON=… mpirun -n 2 node mpi.ts --order any 4096:1000 1048576:200
import { parseArgs } from "node:util";
import { compileWasm, detectBuild } from "@skein/cpu-kernels";
import { createMpiWorld } from "@skein/mpi/node";
import { parseSizes } from "./problem.ts";
import { rankMemory, runRanks } from "./run-ranks.ts";

const { values, positionals } = parseArgs({
  options: { order: { type: "string", default: "any" } },
  allowPositionals: true,
});
const sizes = parseSizes(positionals);
const memory = rankMemory(1, sizes);
const kernels = await compileWasm(await detectBuild());
const world = await createMpiWorld({
  memory,
  kernels,
  preference: { order: values.order === "rank" ? "rank" : "any" },
});
await world.connect();
await runRanks(world, [world.rank], sizes);
await world.close();
