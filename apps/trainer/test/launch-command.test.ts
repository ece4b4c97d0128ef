import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { jobFolder } from "./cli.ts";

const cli = fileURLToPath(new URL("./launch-cli.ts", import.meta.url));
const system = "/usr/bin:/bin";

let folder: string;
let remove: () => void;
beforeEach(() => {
  ({ folder, remove } = jobFolder());
  mkdirSync(join(folder, "bin"));
});
afterEach(() => remove());

/** Puts a bash script on the PATH of the commands started by tests. */
const fake = (name: string, script: string): void => {
  const path = join(folder, "bin", name);
  writeFileSync(path, `#!/bin/bash\n${script}\n`);
  chmodSync(path, 0o755);
};

const read = (name: string): string => readFileSync(join(folder, name), "utf8");
const lines = (name: string): string[] => (existsSync(join(folder, name)) ? read(name).trimEnd().split("\n") : []);

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const startProcess = (
  command: string,
  args: readonly string[],
  env: Record<string, string> = {},
): { readonly child: ChildProcess; readonly ended: Promise<Ended> } => {
  const { NODE_COMPILE_CACHE = "" } = process.env;
  const child = spawn(command, args, {
    cwd: folder,
    env: { PATH: `${join(folder, "bin")}:${system}`, NODE_COMPILE_CACHE, ...env },
  });
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].setEncoding("utf8").on("data", (text: string) => void (written[name] += text));
  return { child, ended: new Promise((resolve) => child.once("close", (code) => resolve({ code, ...written }))) };
};

/** Starts `launch` with an addon that passes its checks; a fake mpirun does not load the addon. */
const startLaunch = (...args: string[]): ReturnType<typeof startProcess> =>
  startProcess(process.execPath, [cli, "launch", "job.yaml", ...args], { SKEIN_MPI_ADDON: join(folder, "mpi.node") });
const launch = (...args: string[]): Promise<Ended> => startLaunch(...args).ended;

const untilThere = async (name: string): Promise<void> => {
  while (!existsSync(join(folder, name))) await new Promise((resolve) => setTimeout(resolve, 5));
};

const inKubernetes = ["--image", "i:1", "--claim", "runs", "--certificates", "certs"];

describe("without --submit nothing is started", () => {
  test("a script for Slurm is printed as a file", async () => {
    fake("sbatch", "touch started");
    const { code, stdout, stderr } = await launch("--target", "slurm", "--insecure");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "nothing was started; add --submit to start it\n" });
    expect(stdout.startsWith("#!/bin/bash\n#SBATCH --job-name=tiny\n#SBATCH --ntasks=2\n")).toBe(true);
    expect(stdout).toContain(`run ${folder}/job.yaml --ranks 2`);
    expect(existsSync(join(folder, "started"))).toBe(false);
  });

  test("objects for Kubernetes are printed as one stream, without the secret", async () => {
    const { code, stdout, stderr } = await launch("--target", "jobset", ...inKubernetes, "--dry-run");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const kinds = parseAllDocuments(stdout).map((document) => (document.toJS() as { kind: string } | null)?.kind);
    expect(kinds).toEqual(["ConfigMap", undefined, "NetworkPolicy", "JobSet"]);
    expect(stdout).not.toMatch(/[0-9a-f]{64}/);
  });

  test("or all of it as JSON", async () => {
    const { stdout } = await launch("--target", "local", "--ranks", "4", "--json", "--quiet");
    const { files, command } = JSON.parse(stdout) as { files: { name: string; text: string }[]; command: string[] };
    expect(files.map(({ name }) => name)).toEqual(["run.sh"]);
    expect(command.slice(-6)).toEqual(["--ranks", "4", "--transport", "threads", "--max-restarts", "3"]);
  });

  test("an error in the job file or an option ends it with code 2", async () => {
    expect(await launch("--target", "local", "--set", "batch=0")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--set batch=0: batch is 0"),
    });
    expect(await launch("--target", "local", "--ranks", "3.5")).toMatchObject({ code: 2 });
    const both = await launch("--target", "local", "--dry-run", "--submit");
    expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining("exclude each other") });
  });
});

describe("--submit", () => {
  test("passes the script to sbatch", async () => {
    fake("sbatch", 'cat > script; echo "$# arguments"; echo Submitted batch job 7');
    expect(await launch("--target", "slurm", "--insecure", "--submit")).toEqual({
      code: 0,
      stdout: "0 arguments\nSubmitted batch job 7\n",
      stderr: "",
    });
    expect(read("script")).toContain("#SBATCH --requeue");
  });

  test("passes the objects to kubectl, with a secret that it prints nowhere", async () => {
    fake("kubectl", 'echo "$*" > arguments; cat > manifest');
    const first = await launch("--target", "k8s-job", ...inKubernetes, "--namespace", "ml", "--submit");
    expect(first).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(read("arguments")).toBe("--namespace ml create -f -\n");
    const secretOf = (): string => /SKEIN_SECRET: "?([0-9a-f]{64})"?$/m.exec(read("manifest"))![1]!;
    const secret = secretOf();
    await launch("--target", "k8s-job", ...inKubernetes, "--submit");
    expect(secretOf()).not.toBe(secret);
  });

  test("reports a command that fails", async () => {
    fake("kubectl", "echo 'Error: already exists' >&2; exit 3"); // does not read its input
    const { code, stderr } = await launch("--target", "k8s-job", ...inKubernetes, "--submit");
    expect(code).toBe(1);
    expect(stderr).toBe(
      "Error: already exists\nkubectl create -f - ended with code 3; its output shows the reason; correct that, and submit again\n",
    );
  });

  test.each([
    ["slurm", "sbatch", ["--insecure"]],
    ["k8s-job", "kubectl", inKubernetes],
    ["mpirun", "mpirun", []],
  ])("for %s reports in one line that %s is missing", async (target, program, options) => {
    const env = { PATH: join(folder, "bin") };
    const { code, stderr } = await startProcess(
      process.execPath,
      [cli, "launch", "job.yaml", "--target", target, ...options, "--submit"],
      env,
    ).ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(new RegExp(`^${program} is not on PATH; [^\n]+\n$`));
  });
});

describe("mpirun", () => {
  /** Installs a fake mpirun that identifies itself as Open MPI, records its arguments, and then runs `script`. */
  const fakeMpirun = (script: string, version = "mpirun (Open MPI) 4.1.4"): void =>
    fake(
      "mpirun",
      `if [[ $1 == --version ]]; then echo "${version}"; exit; fi
printf '%s\\0' "$@" >> calls; echo >> calls
echo "$SKEIN_COORDINATOR $SKEIN_SECRET" >> environments
number=$(wc -l < environments)
${script}`,
    );

  test("is started again after a failure, with the same output and another port, until it succeeds", async () => {
    fakeMpirun("((number < 3)) && exit 1; exit 0");
    const { code, stderr } = await launch("--target", "mpirun", "--submit", "--max-restarts", "2");
    expect(code).toBe(0);
    expect(stderr).toContain(`2 ranks under mpirun, output in ${folder}/runs/tiny/1`);
    expect(stderr).toContain("restart 1 of 2");
    const calls = lines("calls").map((line) => line.split("\0"));
    expect(calls).toHaveLength(3);
    expect(new Set(lines("calls")).size).toBe(1);
    expect(calls[0]!.slice(-4, -1)).toEqual(["--output", `${folder}/runs/tiny/1`, "--resume-if-possible"]);
    const environments = lines("environments");
    for (const line of environments) expect(line).toMatch(/^127\.0\.0\.1:\d+ [0-9a-f]{64}$/);
    expect(lines("calls")[0]).not.toContain(environments[0]!.split(" ")[1]);
  });

  test("gives up after --max-restarts, with its code", async () => {
    fakeMpirun("exit 7");
    const { code, stderr } = await launch("--target", "mpirun", "--submit", "--max-restarts", "1");
    expect({ code, calls: lines("calls").length }).toEqual({ code: 7, calls: 2 });
    expect(stderr).toContain("the ranks ended with code 7, and all restarts (1) are used up");
  });

  test("killed by a signal is a failure with the shell's code", async () => {
    fakeMpirun("kill -KILL $$");
    expect(await launch("--target", "mpirun", "--submit", "--max-restarts", "0")).toMatchObject({ code: 137 });
  });

  test.each([
    ["Open MPI", "mpirun (Open MPI) 4.1.4", "USR2", "SIGINT", 130],
    ["Open MPI", "mpirun (Open MPI) 5.0.7", "USR2", "SIGTERM", 143],
    ["MPICH", "HYDRA build details:", "TERM", "SIGTERM", 143],
  ] as const)("%s (%s) gets SIG%s when we get %s", async (_, version, told, signal, code) => {
    fakeMpirun(
      `for s in INT TERM USR2; do trap "echo $s >> signals; [[ $s == ${told} ]] && exit 143" $s; done
touch ready
for ((i = 0; i < 2000; i++)); do sleep 0.02; done`,
      version,
    );
    const running = startLaunch("--target", "mpirun", "--submit");
    await untilThere("ready");
    running.child.kill(signal);
    expect((await running.ended).code).toBe(code);
    expect(lines("signals")).toEqual([told]);
    expect(lines("calls")).toHaveLength(1);
  });

  test.each([
    ["Open MPI", "mpirun (Open MPI) 4.1.4", "open-mpi"],
    ["MPICH", "HYDRA build details:", "mpich"],
  ])(
    "without an addon for %s nothing is started, and one line names the command that builds it",
    async (_, version, family) => {
      fakeMpirun("exit 0", version);
      const env = { XDG_CACHE_HOME: join(folder, "cache") };
      const args = [cli, "launch", "job.yaml", "--target", "mpirun", "--submit"];
      const { code, stderr } = await startProcess(process.execPath, args, env).ended;
      expect(stderr).toMatch(
        new RegExp(`^no MPI addon for ${family} is in [^\n]+; build it on this machine with: [^\n]* mpi build\n$`),
      );
      expect(code).toBe(2);
      expect(lines("calls")).toEqual([]);
      expect(existsSync(join(folder, "runs"))).toBe(false);
    },
  );

  test("meets on the first host of a host file", async () => {
    fakeMpirun("exit 0");
    writeFileSync(join(folder, "hosts"), "# ours\nnode-7 slots=2\n");
    expect(await launch("--target", "mpirun", "--hostfile", "hosts", "--insecure", "--submit")).toMatchObject({
      code: 0,
    });
    expect(lines("environments")[0]).toMatch(/^node-7:29410 /);
    expect(lines("calls")[0]).toContain(`--hostfile\0${folder}/hosts\0`);
  });

  test("a missing or empty host file is reported", async () => {
    fakeMpirun("exit 0");
    writeFileSync(join(folder, "empty"), "# none\n");
    const options = ["--target", "mpirun", "--insecure", "--hostfile"];
    expect(await launch(...options, "absent", "--submit")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("cannot be read (ENOENT"),
    });
    expect(await launch(...options, "empty", "--submit")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("names no host"),
    });
    expect(existsSync(join(folder, "runs"))).toBe(false);
  });

  test("a dry run claims no folder", async () => {
    fakeMpirun("exit 0");
    expect((await launch("--target", "mpirun", "--dry-run")).stdout).toContain(
      `--output ${folder}/runs/tiny/1 --resume-if-possible`,
    );
    expect(existsSync(join(folder, "runs"))).toBe(false);
    expect(lines("calls")).toEqual([]);
  });
});

describe("the batch script", () => {
  const environment = { SLURM_JOB_ID: "4711", SLURM_JOB_NODELIST: "node-[0-1]" };

  /** Installs a fake Slurm whose step runs `step`, and which records the requests of the script. */
  const fakeSlurm = async (step: string, ...options: string[]): Promise<void> => {
    fake("scontrol", '[[ $1 == show ]] && { echo node-0; echo node-1; exit; }; echo "$*" >> asked');
    fake("scancel", 'echo "scancel $*" >> asked; kill -TERM "$(cat step.pid)"');
    fake(
      "srun",
      `printf '%s\\0' "$@" > call; echo "$SKEIN_COORDINATOR $SKEIN_SECRET" >> environments; echo $$ > step.pid; ${step}`,
    );
    const { stdout } = await launch("--target", "slurm", "--insecure", "--max-restarts", "2", ...options);
    writeFileSync(join(folder, "script"), stdout);
  };

  const run = (): ReturnType<typeof startProcess> => startProcess("bash", ["script"], environment);

  test("starts a step that meets on the first node, with a newly generated secret", async () => {
    await fakeSlurm("exit 0", "--cpus", "3");
    expect(await run().ended).toEqual({ code: 0, stdout: "", stderr: "" });
    const [coordinator, secret] = lines("environments")[0]!.split(" ");
    expect(coordinator).toBe("node-0:24711");
    expect(secret).toMatch(/^[0-9a-f]{64}$/);
    const call = read("call").split("\0");
    expect(call.slice(0, 5)).toEqual([
      "--mpi=pmix",
      "--cpus-per-task=3",
      "--export=ALL",
      "--kill-on-bad-exit=0",
      "--wait=60",
    ]);
    expect(call.slice(-4, -1)).toEqual(["--output", "runs/tiny/4711", "--resume-if-possible"]);
    expect(call.join(" ")).not.toContain(secret);
    await run().ended;
    expect(lines("environments")[1]!.split(" ")[1]).not.toBe(secret);
  });

  test("accepts any folder for its output", async () => {
    const output = 'it\'s $HOME `x` "y"';
    await fakeSlurm("exit 0", "--output", output);
    expect((await run().ended).code).toBe(0);
    expect(read("call").split("\0").slice(-3, -2)).toEqual([output]);
    expect(existsSync(join(folder, output))).toBe(true);
  });

  test.each([9, 75])("is requeued after a failure with code %i, as often as allowed", async (code) => {
    await fakeSlurm(`exit ${code}`);
    for (const restart of [1, 2])
      expect((await run().ended).stderr).toBe(
        `a rank failed with code ${code}; queued again (restart ${restart} of 2)\n`,
      );
    expect(lines("asked")).toEqual(["requeue 4711", "requeue 4711"]);
    const last = await run().ended;
    expect(last.code).toBe(code);
    expect(last.stderr).toContain("all restarts (2) are used up");
    expect(lines("asked")).toHaveLength(2);
  });

  test("restarts without limit while each start brings a newer checkpoint, and a limited number of times from one that brings none", async () => {
    // Each line of `turns` is one turn, which saves that step and fails. Steps 8, 9, 10: sorted as words, 10 would be
    // first.
    await fakeSlurm('next=$(head -n 1 turns); sed -i 1d turns; mkdir -p "runs/tiny/4711/checkpoints/$next"; exit 9');
    const turns = ["step-00000008", "step-00000009", "step-00000010", "step-00000010", ".writing-step-00000011"];
    writeFileSync(join(folder, "turns"), turns.map((turn) => `${turn}\n`).join(""));
    const restarts: string[] = [];
    for (const _ of turns) restarts.push((await run().ended).stderr);
    const queued = (restart: number): string => `a rank failed with code 9; queued again (restart ${restart} of 2)\n`;
    expect(restarts).toEqual([
      queued(1),
      queued(1),
      queued(1),
      queued(2),
      expect.stringContaining("all restarts (2) are used up"),
    ]);
  });

  test.each([0, 2, 130, 143])("ends with the code of a step that ended with %i, and is not requeued", async (code) => {
    await fakeSlurm(`exit ${code}`);
    expect((await run().ended).code).toBe(code);
    expect(lines("asked")).toEqual([]);
  });

  test("near its time limit has the ranks save, waits for them, and is requeued without counting a restart", async () => {
    await fakeSlurm(
      `trap 'sleep 0.3; touch saved; exit 143' TERM
touch ready
for ((i = 0; i < 2000; i++)); do sleep 0.02; done`,
    );
    const running = run();
    await untilThere("ready");
    running.child.kill("SIGUSR1");
    expect((await running.ended).code).toBe(0);
    expect(existsSync(join(folder, "saved"))).toBe(true);
    expect(lines("asked")).toEqual(["scancel --signal=TERM 4711.0", "requeue 4711"]);
    expect(existsSync(join(folder, "runs/tiny/4711/failures-4711"))).toBe(false);
  });

  test("that could not save in time has failed", async () => {
    await fakeSlurm(
      `trap 'exit 137' TERM
touch ready
for ((i = 0; i < 2000; i++)); do sleep 0.02; done`,
    );
    const running = run();
    await untilThere("ready");
    running.child.kill("SIGUSR1");
    expect((await running.ended).stderr).toBe("a rank failed with code 137; queued again (restart 1 of 2)\n");
  });

  const shellcheck = spawnSync("shellcheck", ["--version"]).error === undefined;
  test.skipIf(!shellcheck)("passes shellcheck (skipped where shellcheck is not installed)", async () => {
    await fakeSlurm("exit 0", "--output", "a b");
    const { stdout } = await startProcess("shellcheck", ["--severity=info", "script"]).ended;
    expect(stdout).toBe("");
  });
});
