// Two ranks as processes that communicate over TCP. The file starts itself again as the process of each rank.
import { fork } from "node:child_process";
import { once } from "node:events";
import { createProcessWorld, hostRendezvous, joinRendezvous, joinWorld, randomSecret } from "@skein/collectives/node";

const world = { worldSize: 2, job: "sum of ranks", build: "example 1" }; // must be equal in all processes

const main = async (): Promise<void> => {
  const secret = randomSecret();
  const coordinator = await hostRendezvous({ ...world, secret });
  const ranks = [0, 1].map((rank) =>
    fork(import.meta.filename, [String(rank), String(coordinator.address.port)], { env: { SECRET: secret } }),
  );
  const codes = await Promise.all(ranks.map(async (child) => (await once(child, "exit"))[0] as number));
  await coordinator.close();
  if (codes.some((code) => code !== 0)) throw new Error(`the ranks ended with codes ${codes.join(" and ")}`);
};

const rankMain = async (rank: number, port: number, secret: string): Promise<void> => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1024, shared: true });
  const links = await createProcessWorld({ ...world, ranks: [rank], memory, kernels: "none", secret });
  const member = await joinRendezvous({
    ...world,
    address: { host: "127.0.0.1", port },
    ranks: [rank],
    addresses: links.addresses,
    secret,
  });
  member.onLost(({ ranks, reason }) => ranks.forEach((lost) => links.reportLost(lost, reason)));
  await links.connect(member.roster);
  const communicator = joinWorld(links.connection(rank));
  const values = new Float32Array(memory.buffer, 0, 4).fill(rank + 1);
  const bytes = new Uint8Array(memory.buffer, 0, values.byteLength);
  communicator.wait(communicator.start({ kind: "all-reduce", dtype: "f32", input: bytes, output: bytes }));
  console.log(`rank ${rank} of ${communicator.worldSize}: ${values.join(" ")}`);
  await links.close();
  await member.close();
  if (values[0] !== 3) throw new Error("the ranks' sum is wrong");
};

const [rank, port] = process.argv.slice(2).map(Number);
await (rank === undefined ? main() : rankMain(rank, port!, process.env["SECRET"]!));
