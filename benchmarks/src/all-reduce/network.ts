// All-reduce between processes of one rank each, over TCP, or over TLS with certificates as skein-train certs init
// creates them: node network.ts --ranks 2 [--certificates FOLDER] 4096:1000 1048576:200
import { fork } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { hostRendezvous, randomSecret, readTlsIdentity, type TlsIdentity } from "@skein/collectives/node";
import type { NetworkRank } from "./network-rank.ts";
import { parseSizes } from "./problem.ts";

const { values, positionals } = parseArgs({
  options: { ranks: { type: "string", default: "2" }, certificates: { type: "string" } },
  allowPositionals: true,
});
const worldSize = Number(values.ranks);
const sizes = parseSizes(positionals);
const identity = (name: string): TlsIdentity | undefined => {
  const folder = values.certificates;
  if (folder === undefined) return undefined;
  const file = (suffix: string): string => join(folder, suffix);
  return readTlsIdentity({
    certificate: file(`${name}.pem`),
    key: file(`${name}.key.pem`),
    authority: file("authority.pem"),
  });
};

const secret = randomSecret();
const agreed = { worldSize, job: "bench", build: "bench" };
const security = identity("coordinator");
const coordinator = await hostRendezvous({ ...agreed, secret, ...(security && { security }) });
let finished = 0;
coordinator.onMessage(() => {
  if (++finished === worldSize) coordinator.broadcast("end"); // no rank closes links while another still measures
});
const codes = await Promise.all(
  Array.from({ length: worldSize }, (_, rank) => {
    const child = fork(fileURLToPath(new URL("./network-rank.ts", import.meta.url)), {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    const tls = identity(`rank-${rank}`);
    child.send({
      ...agreed,
      address: coordinator.address,
      secret,
      rank,
      sizes,
      ...(tls && { tls }),
    } satisfies NetworkRank);
    return new Promise<number | null>((resolve, reject) => child.once("exit", resolve).once("error", reject));
  }),
);
await coordinator.close();
process.exitCode = codes.every((code) => code === 0) ? 0 : 1;
