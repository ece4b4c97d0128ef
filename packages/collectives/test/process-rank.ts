import { Worker } from "node:worker_threads";
import type { Facts } from "../src/index.ts";
import { createProcessWorld, joinRendezvous, type ProcessWorldOptions } from "../src/node.ts";

// A process of a multi-process world, for tests: joins, runs one thread per rank, and sends the results of the threads
// to the coordinator.

const { address, secret, ranks, worldSize, job, tls, preference, facts } = JSON.parse(process.argv[2]!) as {
  readonly address: { readonly host: string; readonly port: number };
  readonly secret: string;
  readonly ranks: readonly number[];
  readonly worldSize: number;
  readonly job: unknown;
  readonly preference?: ProcessWorldOptions["preference"];
  readonly facts?: Facts;
  readonly tls?: { readonly certificate: string; readonly key: string; readonly authority: string };
};
const length = 2 ** 22;
const memory = new WebAssembly.Memory({ initial: (ranks.length * length) / 65_536, maximum: 65_536, shared: true });
const agreed = { worldSize, job: "test", build: "1" };
const world = await createProcessWorld({
  ...agreed,
  ranks,
  memory,
  kernels: "none",
  secret,
  timeoutMilliseconds: 20_000,
  ...(tls && { tls }),
  ...(preference && { preference }),
  ...(facts && { facts }),
});
const member = await joinRendezvous({
  ...agreed,
  address,
  secret,
  ranks,
  addresses: world.addresses,
  ...(tls && { security: tls }),
});
member.onLost(({ ranks: lost, reason }) => {
  for (const rank of lost) world.reportLost(rank, reason);
});
// Neither a member nor a world that lost a rank keeps a process alive. Without this timer, the process would exit
// before sending its result.
const alive = setInterval(() => undefined, 60_000);
const ended = new Promise<void>((resolve) => member.onMessage(() => resolve()));
await world.connect(member.roster);
member.send({ connected: ranks });
await Promise.all(
  ranks.map((rank, i) => {
    const worker = new Worker(new URL("./rank-worker.ts", import.meta.url), {
      workerData: { connection: world.connection(rank), job, address: i * length, length },
    });
    world.watch(rank, worker);
    return new Promise<void>((resolve) => {
      worker.once("message", (answer) => {
        member.send({ rank, answer });
        resolve();
      });
      worker.once("error", (error: Error) => {
        member.send({
          rank,
          answer: { outputs: [], bytesSent: 0, error: { code: "died", message: error.message, peer: rank } },
        });
        resolve();
      });
    });
  }),
);
await ended;
await world.close();
await member.close();
clearInterval(alive);
