// Process of one rank of network.ts, which sends the rank its configuration.
import { once } from "node:events";
import { createProcessWorld, joinRendezvous, type RankAddress, type TlsIdentity } from "@skein/collectives/node";
import { compileWasm, detectBuild } from "@skein/cpu-kernels";
import type { Size } from "./problem.ts";
import { rankMemory, runRanks } from "./run-ranks.ts";

export interface NetworkRank {
  readonly address: RankAddress;
  readonly secret: string;
  readonly worldSize: number;
  readonly job: string;
  readonly build: string;
  readonly rank: number;
  readonly sizes: readonly Size[];
  readonly tls?: TlsIdentity;
}

const [{ address, rank, sizes, tls, ...agreed }] = (await once(process, "message")) as [NetworkRank];
process.disconnect();
const ranks = [rank];
const memory = rankMemory(1, sizes);
const kernels = await compileWasm(await detectBuild());
const world = await createProcessWorld({ ...agreed, ranks, memory, kernels, ...(tls && { tls }) });
const member = await joinRendezvous({
  ...agreed,
  address,
  ranks,
  addresses: world.addresses,
  ...(tls && { security: tls }),
});
member.onLost(({ ranks: lost, reason }) => {
  for (const other of lost) world.reportLost(other, reason);
});
const ended = new Promise<void>((resolve) => member.onMessage(() => resolve()));
await world.connect(member.roster);
await runRanks(world, ranks, sizes);
member.send("finished");
await ended;
await world.close();
await member.close();
