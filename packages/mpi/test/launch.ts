import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { MpiFamily } from "../src/addon.ts";
import { builtAddons } from "../src/addon-cache.ts";
import { buildMpiAddon } from "../src/build-addon.ts";

/** Cache folder, kept between runs, so that an addon is built again only if its sources change. */
const cacheFolder = join(tmpdir(), `skein-mpi-tests-${userInfo().username}`);

interface Mpi {
  readonly family: MpiFamily;
  /**
   * Candidate compilers. Debian distinguishes its two MPI libraries by a suffix; other systems have one library,
   * without a suffix.
   */
  readonly compilers: readonly string[];
  readonly launchers: readonly string[];
  readonly flags: readonly string[];
}

const yielding = ["--mca", "btl", "self,vader,tcp", "--mca", "mpi_yield_when_idle", "1"];
const mpis: readonly Mpi[] = [
  {
    family: "open-mpi",
    compilers: ["mpicxx.openmpi", "mpicxx"],
    launchers: ["mpirun.openmpi", "mpirun"],
    flags: ["--allow-run-as-root", "--oversubscribe", ...yielding],
  },
  { family: "mpich", compilers: ["mpicxx.mpich", "mpicxx"], launchers: ["mpiexec.hydra", "mpirun"], flags: [] },
];

export interface Finished {
  readonly code: number | null;
  /** Objects that each rank printed after "RESULT", in rank order. */
  readonly results: readonly Record<string, unknown>[];
  readonly output: string;
}

const collect = (command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Finished> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
    const timer = setTimeout(() => child.kill("SIGTERM"), 100_000); // Launchers forward the signal to their ranks.
    child.once("error", reject);
    child.once("close", (code) => {
      clearTimeout(timer);
      const results = [...output.matchAll(/RESULT (\{.*\})/g)].map(
        (match) => JSON.parse(match[1]!) as Record<string, unknown>,
      );
      resolve({ code, results: results.sort((a, b) => Number(a["rank"]) - Number(b["rank"])), output });
    });
  });

/** An MPI library of this machine with an addon for it, or the reason why the library or the addon is missing. */
export interface FoundMpi {
  readonly name: string;
  readonly missing: string | undefined;
  /** Runs a file of this folder as `ranks` ranks. */
  readonly launch: (ranks: number, file: string, ...args: string[]) => Promise<Finished>;
}

const find = async ({ family, compilers, launchers, flags }: Mpi): Promise<FoundMpi> => {
  const lacking = (missing: string): FoundMpi => ({
    name: `${family} (skipped: ${missing})`,
    missing,
    launch: () => Promise.reject(new Error(missing)),
  });
  mkdirSync(cacheFolder, { recursive: true });
  let [addon] = builtAddons(cacheFolder, family);
  let reason = `no compiler for it`;
  for (const compiler of addon === undefined ? compilers : []) {
    try {
      const built = await buildMpiAddon({ compiler, cacheFolder });
      if (built.family === family) addon = built.file;
    } catch (error) {
      const { code, message } = error as { code: string; message: string };
      if (code !== "mpi-missing") reason = message;
    }
    if (addon !== undefined) break;
  }
  if (addon === undefined) return lacking(reason);
  const word = family === "open-mpi" ? /open.?mpi/i : /hydra|mpich/i;
  for (const launcher of launchers) {
    const version = await collect(launcher, ["--version"], process.env).catch(() => undefined);
    if (version === undefined || !word.test(version.output)) continue;
    const env = { ...process.env, SKEIN_MPI_ADDON: addon };
    const launch: FoundMpi["launch"] = (ranks, file, ...args) =>
      collect(
        launcher,
        [...flags, "-n", String(ranks), process.execPath, fileURLToPath(new URL(file, import.meta.url)), ...args],
        env,
      );
    return { name: family, missing: undefined, launch };
  }
  return lacking("no launcher for it");
};

export const findMpis = async (): Promise<FoundMpi[]> => {
  const found: FoundMpi[] = [];
  for (const mpi of mpis) found.push(await find(mpi));
  return found;
};
