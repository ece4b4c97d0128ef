import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Options of Node and path of the program. If the test run has built the package, this is the built program, which
 * starts in 60 % of the time; otherwise the source. `--no-memory-protection-keys`: see vitest.config.ts.
 */
const program: readonly string[] =
  process.env["SKEIN_PROGRAM"] === "built"
    ? [
        "--no-memory-protection-keys",
        "--conditions=skein-built",
        fileURLToPath(new URL("../dist/main.js", import.meta.url)),
      ]
    : ["--no-memory-protection-keys", fileURLToPath(new URL("../src/main.ts", import.meta.url))];

/** Result of a finished command-line process. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  readonly stderr: () => string;
  readonly ended: Promise<Ended>;
}

export interface StartOptions {
  /** Environment variables in addition to those of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** A launcher and its options, which starts the command. Default: none. */
  readonly launcher?: readonly string[];
}

/** Starts skein-train in `folder`. */
export const start = (folder: string, ...args: string[]): Running => startWith({}, folder, ...args);

export const startWith = ({ env = {}, launcher = [] }: StartOptions, folder: string, ...args: string[]): Running => {
  const [command, ...rest] = [...launcher, process.execPath, ...program, ...args];
  const child = spawn(command!, rest, { cwd: folder, env: { ...process.env, NO_COLOR: "1", ...env } });
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].setEncoding("utf8").on("data", (text: string) => void (written[name] += text));
  const ended = new Promise<Ended>((resolve) =>
    child.once("close", (code, signal) => resolve({ code, signal, ...written })),
  );
  return { child, stderr: () => written.stderr, ended };
};

export const skeinTrain = (folder: string, ...args: string[]): Promise<Ended> => start(folder, ...args).ended;

/** Returns a free port of this machine. */
export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });

/** Parameters for starting one of two processes of a run separately, as a launcher would on each machine. */
export interface RankStart {
  readonly folder: string;
  /** Port at which rank 0 hosts the rendezvous. */
  readonly port: number;
  readonly rank: number;
  /** Arguments after `run job.yaml`. */
  readonly args: readonly string[];
  readonly secret?: string | undefined;
  readonly env?: Readonly<Record<string, string>>;
}

export const startRank = ({ folder, port, rank, args, secret = "s".repeat(43), env = {} }: RankStart): Running =>
  startWith(
    {
      env: {
        ...env,
        RANK: String(rank),
        WORLD_SIZE: "2",
        SKEIN_COORDINATOR: `127.0.0.1:${port}`,
        SKEIN_SECRET: secret,
      },
    },
    folder,
    "run",
    "job.yaml",
    ...args,
    "--resume-if-possible",
  );

/**
 * Creates a new folder with a tiny job in `job.yaml`: 2 ranks, 640 digits, a small MLP, and top-k with error feedback.
 */
export const jobFolder = (): { readonly folder: string; readonly remove: () => void } => {
  const folder = mkdtempSync(join(tmpdir(), "skein-train-"));
  writeFileSync(join(folder, "job.yaml"), tinyJob);
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
};

const tinyJob = `name: tiny
seed: 3
ranks: 2
backend: cpu
batch: 32
steps: 30
data: { kind: mnist, trainSamples: 640, testSamples: 203 }
model: { kind: mlp, hidden: [16] }
optimizer: { kind: adamw }
learningRate: { peak: 0.005, warmupSteps: 5, decay: cosine }
compression: { kind: top-k, density: 0.05 }
evaluation: { batch: 100 }
checkpoint: { everySteps: 10, keep: 3 }
`;

/**
 * Options with which the job of `jobFolder` needs more memory than ranks have, because of the activations of a step,
 * which are unknown before compilation.
 */
export const tooLarge: readonly string[] = ["model={kind: cnn}", "data.trainSamples=60000", "batch=60000"].flatMap(
  (value) => ["--set", value],
);

export interface Line {
  readonly type: string;
  readonly step: number;
  readonly loss: number;
  readonly accuracy: number;
  readonly gradientNorm?: number;
  readonly learningRate?: number;
}

export const metricLines = (output: string): Line[] =>
  readFileSync(join(output, "metrics.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);

export const stepLosses = (output: string): number[] =>
  metricLines(output)
    .filter(({ type }) => type === "step")
    .map(({ loss }) => loss);

export const checkpointNames = (output: string): string[] => {
  const folder = join(output, "checkpoints");
  return existsSync(folder) ? readdirSync(folder).sort() : [];
};

/** Returns the metrics of the update of each step, in step order, from step lines or from update lines. */
export const reportedUpdates = (
  output: string,
): { readonly step: number; readonly gradientNorm: number; readonly learningRate: number }[] =>
  metricLines(output).flatMap(({ step, gradientNorm, learningRate }) =>
    gradientNorm === undefined || learningRate === undefined ? [] : [{ step, gradientNorm, learningRate }],
  );

/** Returns the tensor files of a checkpoint, sorted by name. */
export const checkpointFiles = (output: string, step: number): [name: string, content: Buffer][] => {
  const folder = join(output, "checkpoints", `step-${String(step).padStart(8, "0")}`);
  return readdirSync(folder)
    .filter((name) => name.endsWith(".safetensors"))
    .sort()
    .map((name) => [name, readFileSync(join(folder, name))]);
};

/** Returns the contents of the tensor files of a checkpoint as text, by file name. */
export const checkpointBytes = (output: string, step: number): Record<string, string> =>
  Object.fromEntries(checkpointFiles(output, step).map(([name, content]) => [name, content.toString("base64")]));

/** Waits until `condition` holds. Fails if the process ends before that. */
export const until = async (running: Running, condition: () => boolean): Promise<void> => {
  let over: Ended | undefined;
  void running.ended.then((ended) => {
    over = ended;
  });
  for (;;) {
    if (over?.code === 0) throw tooLate(over);
    if (condition()) return;
    if (over !== undefined) throw new Error(`the run ended before what was waited for: ${over.stderr}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

/**
 * Returns the error for a run that had ended before the test disturbed it, because a busy machine delayed the test. The
 * test is then repeated (vitest.config.ts).
 */
const tooLate = ({ stderr }: Ended): Error =>
  new Error(`too late: the run had ended well before it was disturbed: ${stderr}`);

/**
 * Returns the result of a run after a test disturbed it.
 * @param isSeen Returns whether the disturbance had an effect. Default: by exit code.
 * @throws Error if the run had ended before the disturbance.
 */
export const disturbed = async (
  running: Running,
  isSeen = ({ code }: Ended): boolean => code !== 0,
): Promise<Ended> => {
  const ended = await running.ended;
  if (ended.code === 0 && !isSeen(ended)) throw tooLate(ended);
  return ended;
};

/** Whether a run has resumed by itself after it lost a process. */
export const hasGoneOn = ({ stderr }: Ended): boolean => stderr.includes("going on from");

/**
 * Returns the number of established connections from this machine to a port, from the table of Linux: address, port and
 * state in hexadecimal.
 */
export const connectionsTo = (port: number): number => {
  const remote = `:${port.toString(16).toUpperCase().padStart(4, "0")} 01 `;
  return readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .filter((line) => line.includes(remote)).length;
};

/** Returns the ids of the child processes of a process, oldest first. Linux only. */
export const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    .split(" ")
    .filter((word) => word !== "")
    .map(Number);
