// Checks that a world of processes stays correct, with bounded memory, under full load for a long time. Every result of
// random collectives is checked. Run: node bench/soak.ts [seconds, default 600] [processes, default 2] [ranks per
// process, default 2]
import { spawn } from "node:child_process";
import { hostRendezvous, randomSecret } from "../src/node.ts";

const [seconds = 600, processes = 2, each = 2] = process.argv.slice(2).map(Number);
const worldSize = processes * each;
const secret = randomSecret();
const seed = Math.floor(Math.random() * 2 ** 32);
process.stdout.write(`${processes} processes of ${each} ranks over TCP, ${seconds} s, seed ${seed}\n`);

const coordinator = await hostRendezvous({ worldSize, job: "soak", build: "1", secret });
coordinator.ready.catch(() => undefined); // A process that fails reports the reason itself.
coordinator.onMessage(({ message }) => {
  const { rank, requests, bytesSent, megabytes } = message as {
    rank: number;
    requests: number;
    bytesSent: number;
    megabytes: number;
  };
  if (rank === 0)
    process.stdout.write(
      `${requests} requests checked, ${(bytesSent / 2 ** 30).toFixed(2)} GiB sent by rank 0, ${megabytes.toFixed(0)} MiB resident\n`,
    );
});
const codes = await Promise.all(
  Array.from({ length: processes }, (_, index) => {
    const ranks = Array.from({ length: each }, (_, i) => index * each + i);
    const input = JSON.stringify({ address: coordinator.address, secret, ranks, worldSize, seconds, seed });
    const child = spawn(
      process.execPath,
      [...process.execArgv, new URL("./soak-process.ts", import.meta.url).pathname, input],
      {
        stdio: "inherit",
      },
    );
    return new Promise<number>((resolve) => child.once("exit", (code) => resolve(code ?? 1)));
  }),
);
await coordinator.close();
if (codes.some((code) => code !== 0)) {
  process.stderr.write(`processes ended with codes ${codes.join(", ")}\n`);
  process.exitCode = 1;
}
