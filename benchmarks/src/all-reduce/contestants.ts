import { execFile, spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildMpiAddon, MpiError } from "@skein/mpi/node";
import { pythonWithTorch } from "../suites/contestants.ts";

const run = promisify(execFile);
const beside = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

/** Who takes part: a command that prints a `Measurement` for each size it is given, or why there is none. */
export type Contestant = { readonly name: string } & (
  | { readonly command: readonly string[]; readonly environment?: Readonly<Record<string, string>> }
  | { readonly missing: string }
);

const noMpi = "no mpicc here; install libopenmpi-dev and openmpi-bin";

const buildOpenMpi = async (folder: string): Promise<{ readonly program: string } | { readonly missing: string }> => {
  const program = join(folder, "open-mpi-all-reduce");
  try {
    await run("mpicc", ["-O3", beside("./open-mpi.c"), "-o", program]);
    return { program };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { missing: noMpi };
    throw error;
  }
};

const buildAddon = async (folder: string): Promise<{ readonly addon: string } | { readonly missing: string }> => {
  try {
    return { addon: (await buildMpiAddon({ output: join(folder, "skein-mpi.node") })).file };
  } catch (error) {
    if (error instanceof MpiError && error.code === "mpi-missing") return { missing: noMpi };
    throw error;
  }
};

/** Certificates as a job gets them. */
const makeCertificates = async (folder: string, ranks: number): Promise<string> => {
  const certificates = join(folder, `certificates-${ranks}`);
  const program = beside("../../../apps/trainer/src/main.ts");
  await run(process.execPath, [program, "certs", "init", "--ranks", String(ranks), "--output", certificates]);
  return certificates;
};

/** Flags of Open MPI for processes of one machine that speak over `transport`. */
const mpirun = (ranks: number, transport: "vader" | "tcp"): string[] => [
  "mpirun",
  ...(process.getuid?.() === 0 ? ["--allow-run-as-root"] : []),
  "-n",
  String(ranks),
  ...(ranks > availableParallelism() ? ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"] : []),
  "--mca",
  "pml",
  "ob1",
  "--mca",
  "btl",
  `self,${transport}`,
];

// V8 may abort where worker threads come and go on processors with protection keys (nodejs/node#64500).
const node = [process.execPath, "--no-memory-protection-keys"];

/** Names that rows are made of. */
export const names = {
  threads: "threads",
  tcp: "TCP",
  tls: "TLS",
  mpi: "MPI adapter",
  mpiSchedules: "schedules over MPI",
  mpiCalls: "MPI adapter without companion",
  mpiCallSchedules: "schedules over MPI without companion",
  openMpi: "Open MPI, shared memory",
  openMpiCalls: "MPI_Iallreduce in C, shared memory",
  openMpiTcp: "Open MPI, TCP",
  gloo: "Gloo",
} as const;

/** Build and find everything that can all-reduce between `ranks` ranks on this machine. @param folder for what is built. */
export const findContestants = async (ranks: number, folder: string): Promise<Contestant[]> => {
  const [open, addon, certificates] = [await buildOpenMpi(folder), await buildAddon(folder), await makeCertificates(folder, ranks)];
  const python = pythonWithTorch();
  const count = ["--ranks", String(ranks)];
  const inC = (name: string, transport: "vader" | "tcp", call: "blocking" | "non-blocking"): Contestant =>
    "program" in open ? { name, command: [...mpirun(ranks, transport), open.program, call] } : { name, ...open };
  // Ranks of ours compute and exchange on threads of their own, so they are not bound to a core; skein-train starts them so too.
  const overMpi = (name: string, file: string, ...options: string[]): Contestant =>
    "addon" in addon
      ? {
          name,
          command: [...mpirun(ranks, "vader"), "--bind-to", "none", ...node, beside(file), ...options],
          environment: { SKEIN_MPI_ADDON: addon.addon },
        }
      : { name, ...addon };
  return [
    { name: names.threads, command: [...node, beside("./threads.ts"), ...count] },
    inC(names.openMpi, "vader", "blocking"),
    { name: names.tcp, command: [...node, beside("./network.ts"), ...count] },
    python === undefined
      ? { name: names.gloo, missing: "python3-torch is not installed" }
      : { name: names.gloo, command: [python, beside("./gloo.py"), ...count] },
    inC(names.openMpiTcp, "tcp", "blocking"),
    { name: names.tls, command: [...node, beside("./network.ts"), ...count, "--certificates", certificates] },
    overMpi(names.mpi, "./mpi.ts", "--order", "any"),
    inC(names.openMpiCalls, "vader", "non-blocking"),
    overMpi(names.mpiCalls, "./mpi-calls.ts", "--by", "native"),
    // The sum of two has one order, so that a job of two ranks always takes MPI's.
    ...(ranks > 2 ? [overMpi(names.mpiSchedules, "./mpi.ts", "--order", "rank")] : []),
    overMpi(names.mpiCallSchedules, "./mpi-calls.ts", "--by", "choice"),
  ];
};

/** Versions of what takes part, for the page. */
export const peerVersions = (): Record<string, string> => {
  const firstNumber = (command: string, args: readonly string[]): string | undefined =>
    /\d+\.\d+\.\d+/.exec(spawnSync(command, args, { encoding: "utf8" }).stdout ?? "")?.[0];
  const python = pythonWithTorch();
  const found = {
    "Open MPI": firstNumber("mpirun", ["--version"]),
    "PyTorch (Gloo)": python && firstNumber(python, ["-c", "import torch; print(torch.__version__)"]),
  };
  return Object.fromEntries(Object.entries(found).flatMap(([name, version]) => (version === undefined ? [] : [[name, version]])));
};
