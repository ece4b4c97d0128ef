// How much of MPI's speed is left when JavaScript calls it: node bench/compare.ts [ranks]. Medians; both sides in turn, three rounds.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildMpiAddon } from "../src/node.ts";

const run = promisify(execFile);
const beside = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const ranks = process.argv[2] ?? "2";
const sizes = ["4096:1000", "65536:500", "1048576:200", "4194304:60", "16777216:30", "67108864:15"];
const contestants = ["blocking", "non-blocking", "native", "halving-doubling-all-reduce"] as const;
const rounds = 3;
const flags = ["--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader,tcp", "-n", ranks];

const folder = mkdtempSync(join(tmpdir(), "skein-mpi-bench-"));
try {
  const program = join(folder, "all-reduce");
  await run("mpicc", ["-O3", beside("./all-reduce.c"), "-o", program]);
  const { file } = await buildMpiAddon({ output: join(folder, "skein-mpi.node") });
  const samples = new Map<string, number[]>();
  for (let round = 0; round < rounds; round++) {
    for (const name of contestants) {
      const command = name === "blocking" || name === "non-blocking" ? [program] : [process.execPath, beside("./rank.ts")];
      const { stdout } = await run("mpirun", [...flags, ...command, name, ...sizes], { env: { ...process.env, SKEIN_MPI_ADDON: file } });
      for (const line of stdout.trim().split("\n")) {
        const { bytes, microseconds } = JSON.parse(line) as { bytes: number; microseconds: number[] };
        const key = `${bytes} ${name}`;
        samples.set(key, [...(samples.get(key) ?? []), ...microseconds]);
      }
    }
  }
  const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
  console.log(`${ranks} ranks, µs                C MPI_Allreduce  C MPI_Iallreduce  adapter (of both)          schedule over messages`);
  for (const size of sizes) {
    const bytes = size.split(":")[0]!;
    const [blocking, nonBlocking, native, schedule] = contestants.map((name) => median(samples.get(`${bytes} ${name}`)!)) as [
      number,
      number,
      number,
      number,
    ];
    const ratios = `(${(blocking / native).toFixed(2)}, ${(nonBlocking / native).toFixed(2)})`;
    const columns = [blocking.toFixed(1), nonBlocking.toFixed(1), `${native.toFixed(1)} ${ratios}`, schedule.toFixed(1)];
    console.log(`${bytes.padStart(10)} bytes ${columns.map((text) => text.padStart(24)).join("")}`);
  }
} finally {
  rmSync(folder, { recursive: true });
}
