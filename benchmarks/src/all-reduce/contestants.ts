import { execFile, spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildMpiAddon, MpiError } from "@skein/mpi/node";
import { pythonWithTorch } from "../suites/contestants.ts";
import { names } from "./names.ts";

const run = promisify(execFile);
const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

/**
 * One of the compared implementations of all-reduce: a command, or the reason why the implementation is missing. The
 * command prints its `Conditions`, and a `Measurement` for each size on its command line.
 */
export type Contestant = { readonly name: string } & (
  | { readonly command: readonly string[]; readonly environment?: Readonly<Record<string, string>> }
  | { readonly missing: string }
);

const noMpi = "no mpicc here; install libopenmpi-dev and openmpi-bin";

const buildOpenMpi = async (folder: string): Promise<{ readonly program: string } | { readonly missing: string }> => {
  const program = join(folder, "open-mpi-all-reduce");
  try {
    await run("mpicc", ["-O3", pathOf("./open-mpi.c"), "-o", program]);
    return { program };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { missing: noMpi };
    throw error;
  }
};

const buildGloo = async (folder: string): Promise<{ readonly program: string } | { readonly missing: string }> => {
  const program = join(folder, "gloo-all-reduce");
  try {
    // English messages, because the code below matches their text.
    await run("c++", ["-std=c++17", "-O3", pathOf("./gloo.cc"), "-lgloo", "-o", program], {
      env: { ...process.env, LC_ALL: "C" },
    });
    return { program };
  } catch (error) {
    const { code, stderr = "" } = error as NodeJS.ErrnoException & { readonly stderr?: string };
    if (code === "ENOENT" || /gloo\/\S+: No such file|cannot find -lgloo/.test(stderr))
      return { missing: "no Gloo for C++ here; install libgloo-dev and g++" };
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

/** Creates certificates in the same way as for a job. */
const makeCertificates = async (folder: string, ranks: number): Promise<string> => {
  const certificates = join(folder, `certificates-${ranks}`);
  const program = pathOf("../../../apps/trainer/src/main.ts");
  await run(process.execPath, [program, "certs", "init", "--ranks", String(ranks), "--output", certificates]);
  return certificates;
};

/**
 * Returns Open MPI flags for processes of one machine that communicate over `transport`. The flags fix all settings
 * that would otherwise depend on the number of ranks or on how Open MPI was built: one processor per rank if there are
 * enough, a single copy by the kernel (CMA) between two processes, TCP over loopback.
 *
 * @param bound Whether to bind each rank to a processor; false for ranks that compute and communicate on different
 * threads, as in skein-train.
 */
export const mpirun = (
  ranks: number,
  transport: "vader" | "tcp",
  { bound, processors = availableParallelism() }: { readonly bound: boolean; readonly processors?: number },
): string[] => [
  "mpirun",
  ...(process.getuid?.() === 0 ? ["--allow-run-as-root"] : []),
  "-n",
  String(ranks),
  ...(ranks > processors ? ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"] : []),
  ...(bound && ranks <= processors ? ["--map-by", "core", "--bind-to", "core"] : ["--bind-to", "none"]),
  "--mca",
  "pml",
  "ob1",
  "--mca",
  "btl",
  `self,${transport}`,
  ...(transport === "vader"
    ? ["--mca", "btl_vader_single_copy_mechanism", "cma"]
    : ["--mca", "btl_tcp_if_include", "lo"]),
];

// V8 may abort when worker threads start and end on processors with protection keys (nodejs/node#64500).
const node = [process.execPath, "--no-memory-protection-keys"];

/**
 * Builds and finds all implementations that can all-reduce between `ranks` ranks on this machine.
 *
 * @param folder Folder for build outputs.
 */
export const findContestants = async (ranks: number, folder: string): Promise<Contestant[]> => {
  const [open, addon, gloo] = [await buildOpenMpi(folder), await buildAddon(folder), await buildGloo(folder)];
  const certificates = await makeCertificates(folder, ranks);
  const python = pythonWithTorch();
  const count = ["--ranks", String(ranks)];
  const inC = (name: string, transport: "vader" | "tcp", call: "blocking" | "non-blocking"): Contestant =>
    "program" in open
      ? { name, command: [...mpirun(ranks, transport, { bound: true }), open.program, call] }
      : { name, ...open };
  const overMpi = (name: string, file: string, ...options: string[]): Contestant =>
    "addon" in addon
      ? {
          name,
          command: [...mpirun(ranks, "vader", { bound: false }), ...node, pathOf(file), ...options],
          environment: { SKEIN_MPI_ADDON: addon.addon },
        }
      : { name, ...addon };
  return [
    { name: names.threads, command: [...node, pathOf("./threads.ts"), ...count] },
    inC(names.openMpi, "vader", "blocking"),
    { name: names.tcp, command: [...node, pathOf("./network.ts"), ...count] },
    "program" in gloo
      ? { name: names.gloo, command: [gloo.program, String(ranks)], environment: { TMPDIR: folder } }
      : { name: names.gloo, ...gloo },
    python === undefined
      ? { name: names.pytorch, missing: "python3-torch is not installed" }
      : { name: names.pytorch, command: [python, pathOf("./gloo.py"), ...count] },
    inC(names.openMpiTcp, "tcp", "blocking"),
    { name: names.tls, command: [...node, pathOf("./network.ts"), ...count, "--certificates", certificates] },
    overMpi(names.mpi, "./mpi.ts", "--order", "any"),
    inC(names.openMpiCalls, "vader", "non-blocking"),
    overMpi(names.mpiCalls, "./mpi-calls.ts", "--by", "native"),
    // A sum of two summands has only one order, so a job of two ranks always uses MPI's all-reduce.
    ...(ranks > 2 ? [overMpi(names.mpiSchedules, "./mpi.ts", "--order", "rank")] : []),
    overMpi(names.mpiCallSchedules, "./mpi-calls.ts", "--by", "choice"),
  ];
};

/** Returns the versions of the peers, for the page. */
export const peerVersions = (): Record<string, string> => {
  const firstNumber = (command: string, args: readonly string[]): string | undefined =>
    /\d+\.\d+\.\d+/.exec(spawnSync(command, args, { encoding: "utf8" }).stdout ?? "")?.[0];
  const python = pythonWithTorch();
  const found = {
    "Open MPI": firstNumber("mpirun", ["--version"]),
    "PyTorch (Gloo)": python && firstNumber(python, ["-c", "import torch; print(torch.__version__)"]),
  };
  return Object.fromEntries(
    Object.entries(found).flatMap(([name, version]) => (version === undefined ? [] : [[name, version]])),
  );
};
