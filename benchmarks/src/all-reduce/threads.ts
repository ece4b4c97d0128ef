// All-reduce between ranks that are threads of this process: node threads.ts --ranks 2 4096:1000 1048576:200
import { parseArgs } from "node:util";
import { createThreadWorld } from "@skein/collectives/node";
import { compileWasm, detectBuild } from "@skein/cpu-kernels";
import { parseSizes } from "./problem.ts";
import { rankMemory, runRanks } from "./run-ranks.ts";

const { values, positionals } = parseArgs({
  options: { ranks: { type: "string", default: "2" } },
  allowPositionals: true,
});
const worldSize = Number(values.ranks);
const sizes = parseSizes(positionals);
const memory = rankMemory(worldSize, sizes);
const world = createThreadWorld({ worldSize, memory, kernels: await compileWasm(await detectBuild()) });
await runRanks(
  world,
  Array.from({ length: worldSize }, (_, rank) => rank),
  sizes,
);
await world.close();
