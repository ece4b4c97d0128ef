import { Worker } from "node:worker_threads";
import { createProcessWorld, joinRendezvous } from "../src/node.ts";

// One process of the soak test.

const { address, secret, ranks, worldSize, seconds, seed } = JSON.parse(process.argv[2]!) as {
  readonly address: { readonly host: string; readonly port: number };
  readonly secret: string;
  readonly ranks: readonly number[];
  readonly worldSize: number;
  readonly seconds: number;
  readonly seed: number;
};
const length = 2 ** 25;
const memory = new WebAssembly.Memory({ initial: (ranks.length * length) / 65_536, maximum: 65_536, shared: true });
const agreed = { worldSize, job: "soak", build: "1" };
const world = await createProcessWorld({ ...agreed, ranks, memory, kernels: "none", secret });
const member = await joinRendezvous({ ...agreed, address, secret, ranks, addresses: world.addresses });
member.onLost(({ ranks: lost, reason }) => {
  for (const rank of lost) world.reportLost(rank, reason);
});
await world.connect(member.roster);
await Promise.all(
  ranks.map((rank, i) => {
    const worker = new Worker(new URL("./soak-rank.ts", import.meta.url), {
      workerData: { connection: world.connection(rank), address: i * length, length, seconds, seed },
    });
    world.watch(rank, worker);
    worker.on("message", (report) => member.send({ rank, ...report }));
    return new Promise((resolve, reject) => worker.once("exit", resolve).once("error", reject));
  }),
);
await world.close();
await member.close();
