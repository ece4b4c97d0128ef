import { spawnSync } from "node:child_process";
import { shellCommand } from "@skein/cli/node";
import {
  firstHost,
  type LaunchContext,
  type LaunchOptions,
  localCommand,
  mpirunCommand,
  mpirunScript,
  parseMpirunVersion,
  slurm,
} from "@skein/launch/node";
import { describe, expect, test } from "vitest";
import { cluster, job, plan, secret } from "./launch-plans.ts";

/** Returns the words of a command as parsed by the shell. */
const bashWords = (command: string): string[] => {
  const { stdout, status } = spawnSync("bash", ["-c", `for word in "$@"; do :; done; printf '%s\\0' ${command}`], {
    encoding: "utf8",
  });
  expect(status).toBe(0);
  return stdout.split("\0").slice(0, -1);
};

const expectSound = (script: string): void => {
  const { status, stderr } = spawnSync("bash", ["-n"], { input: script, encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
};

describe("local", () => {
  test("is skein-train run with the same options", () => {
    expect(
      localCommand(
        plan({
          target: "local",
          ranks: "3",
          steps: "7",
          set: ["seed=1"],
          transport: "tcp",
          maxRestarts: "1",
          output: "out",
        }),
      ),
    ).toEqual([
      "/opt/node/bin/node",
      "/opt/skein train/main.js",
      "run",
      job.path,
      "--ranks",
      "3",
      "--transport",
      "tcp",
      "--steps",
      "7",
      "--set",
      "seed=1",
      "--max-restarts",
      "1",
      "--output",
      "out",
      "--resume-if-possible",
    ]);
  });
});

describe("mpirun", () => {
  const host = { cores: 4, root: false } as const;

  test.each([
    ["mpirun (Open MPI) 4.1.4\n\nReport bugs to …", "open-mpi-4"],
    ["mpirun (Open MPI) 5.0.7\n", "open-mpi-5"],
    ["HYDRA build details:\n    Version:          4.0.2\n", "hydra"],
  ])("%j is %s", (text, version) => expect(parseMpirunVersion(text)).toBe(version));

  test.each(["mpirun (Open MPI) 3.1.3", "Intel(R) MPI Library", ""])("%j is refused by name", (text) => {
    expect(() => parseMpirunVersion(text)).toThrow(/not Open MPI 4, Open MPI 5 or MPICH/);
  });

  test("of Open MPI 4", () => {
    const command = mpirunCommand(
      plan({ target: "mpirun", ranks: "8" }),
      { ...host, version: "open-mpi-4", root: true },
      "/out",
    );
    expect(command.slice(0, command.indexOf("/opt/node/bin/node"))).toEqual([
      "mpirun",
      "-n",
      "8",
      "--allow-run-as-root",
      "--bind-to",
      "none",
      "--oversubscribe",
      "--mca",
      "odls_base_sigkill_timeout",
      "5",
      "--mca",
      "mpi_yield_when_idle",
      "1",
      "-x",
      "SKEIN_COORDINATOR",
      "-x",
      "SKEIN_SECRET",
    ]);
    expect(command.slice(-6)).toEqual(
      ["--ranks", "8", "--transport", "mpi", "--output", "/out", "--resume-if-possible"].slice(-6),
    );
  });

  test("checks host keys unless disabled", () => {
    const openMpi = { ...host, version: "open-mpi-4" } as const;
    const options = { target: "mpirun", hostfile: "/h", sshKey: "/k", insecure: true };
    const unchecked = mpirunCommand(plan({ ...options, sshTrustAnyHost: true }), openMpi, "/out");
    expect(unchecked).toContain("-i /k -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null");
    expect(mpirunCommand(plan(options), openMpi, "/out").join(" ")).not.toMatch(/StrictHostKeyChecking|UserKnownHosts/);
  });

  test("of Open MPI 5, over ssh", () => {
    const command = mpirunCommand(
      plan({ target: "mpirun", ranks: "8", hostfile: "/h", sshPort: "2222", sshKey: "/k", insecure: true }),
      { ...host, version: "open-mpi-5" },
      "/out",
    );
    expect(command.slice(0, command.indexOf("/opt/node/bin/node"))).toEqual([
      "mpirun",
      "-n",
      "8",
      "--bind-to",
      "none",
      "--hostfile",
      "/h",
      "--prtemca",
      "odls_base_sigkill_timeout",
      "5",
      "--prtemca",
      "plm_ssh_args",
      "-p 2222 -i /k",
      "-x",
      "SKEIN_COORDINATOR",
      "-x",
      "SKEIN_SECRET",
    ]);
  });

  test("of MPICH", () => {
    const command = mpirunCommand(
      plan({ target: "mpirun", hostfile: "/h", insecure: true }),
      { ...host, version: "hydra" },
      "/out",
    );
    expect(command.slice(0, command.indexOf("/opt/node/bin/node"))).toEqual(["mpirun", "-n", "2", "-f", "/h"]);
  });

  test("counts processes, not ranks, where a process holds several", () => {
    const command = mpirunCommand(
      plan({ target: "mpirun", ranks: "8", transport: "tcp" }, { ranksPerProcess: 4 }),
      { ...host, version: "hydra" },
      "/o",
    );
    expect(command.slice(0, 3)).toEqual(["mpirun", "-n", "2"]);
    expect(command[command.indexOf("--ranks") + 1]).toBe("8");
  });

  test("as a script passes each word unchanged", () => {
    const command = mpirunCommand(
      plan({ target: "mpirun", set: ["a='b c' $HOME \"`x`\" \\ !"] }),
      { ...host, version: "open-mpi-4" },
      "/out put/'$x'",
    );
    const script = mpirunScript(command, "127.0.0.1:5");
    expectSound(script);
    expect(bashWords(/^exec (.*)$/m.exec(script)![1]!)).toEqual(command);
    expect(script).not.toContain(secret);
  });

  test.each([
    ["node-0 slots=2\nnode-1\n", "node-0"],
    ["# machines\n\n  a.b:4 # first\n", "a.b"],
    ["# none\n", undefined],
  ])("rank 0 of host file %j is on %s", (text, expected) => expect(firstHost(text)).toBe(expected));
});

test("every character that is special to the shell arrives unchanged", () => {
  const words = [
    ...Array.from({ length: 126 }, (_, i) => `a${String.fromCharCode(i + 1)}b`),
    "",
    "'",
    "''",
    "-",
    "$(id)",
    "`id`",
    "a'b\"c",
    "*",
    "~",
    "\n",
    "é€𝄞",
    "--flag=x y",
  ];
  expect(bashWords(shellCommand(words))).toEqual(words);
});

describe("slurm", () => {
  const directives = (options: Partial<LaunchOptions>, changes: Partial<LaunchContext["job"]> = {}): string[] =>
    [
      ...slurm(plan({ target: "slurm", insecure: true, ...options }, changes)).files[0]!.text.matchAll(
        /^#SBATCH (.*)$/gm,
      ),
    ].map(([, directive]) => directive!);

  test("requests what the plan says", () => {
    expect(
      directives({
        ranks: "8",
        nodes: "2",
        gpus: "1",
        gpuResource: "gpu:a100",
        cpus: "4",
        memory: "8Gi",
        time: "100:00:05",
        queue: "long",
      }),
    ).toEqual([
      "--job-name=mnist",
      "--ntasks=8",
      "--nodes=2",
      "--ntasks-per-node=4",
      "--cpus-per-task=4",
      "--mem-per-cpu=2048M",
      "--gres=gpu:a100:4",
      "--time=100:00:05",
      "--partition=long",
      "--requeue",
      "--signal=B:USR1@120",
      "--open-mode=append",
    ]);
    expect(directives({})).toEqual([
      "--job-name=mnist",
      "--ntasks=2",
      "--cpus-per-task=2",
      "--requeue",
      "--signal=B:USR1@120",
      "--open-mode=append",
    ]);
    expect(
      directives({ ranks: "8", transport: "tcp", nodes: "2", memory: "1Gi", gpus: "1" }, { ranksPerProcess: 2 }),
    ).toEqual(
      expect.arrayContaining([
        "--ntasks=4",
        "--ntasks-per-node=2",
        "--cpus-per-task=4",
        "--mem-per-cpu=512M",
        "--gres=gpu:4",
      ]),
    );
  });

  test.each([{}, { output: "a b'c$d`e`" }, { set: ["x='$(id)'"] }, { port: "1" }])(
    "is a valid script with %j",
    (options) => {
      expectSound(slurm(plan({ target: "slurm", insecure: true, ...options })).files[0]!.text);
    },
  );

  test("is passed on as printed, and holds no secret", () => {
    const launch = slurm(plan({ target: "slurm", insecure: true }));
    expect(launch.submission).toEqual({ command: ["sbatch"], input: launch.files[0]!.text });
    expect(launch.files[0]!.text).toMatch(/SKEIN_SECRET="\$\(od [^)]*\/dev\/urandom/);
  });
});

describe("one line for each fault of", () => {
  const faults = (
    options: Partial<LaunchOptions> & { readonly target: string },
    changes: Partial<LaunchContext["job"]> = {},
  ): string[] => {
    try {
      plan(options, changes);
    } catch (error) {
      return (error as Error).message.split("\n");
    }
    return [];
  };

  test.each<[Partial<LaunchOptions> & { readonly target: string }, RegExp[]]>([
    [{ target: "cloud" }, [/^--target cloud: is unknown; use one of: local, mpirun, slurm/]],
    [{ target: "local", ranks: "many" }, [/^--ranks many: must be a whole number from 1 to/]],
    [
      { target: "local", ranks: "0", maxRestarts: "-1" },
      [/^--ranks 0/, /^--max-restarts -1: must be a whole number from 0 to 1000/],
    ],
    [
      { target: "local", image: "x", hostfile: "h" },
      [/^--image has no effect for --target local, only for k8s-job, jobset, trainjob/, /^--hostfile has/],
    ],
    [{ target: "jobset" }, [/needs --image/, /needs --claim/, /^--transport tls needs --certificates: the Secret/]],
    [{ target: "slurm" }, [/^--transport mpi sends unencrypted data between machines; .*--insecure/]],
    [{ target: "slurm", transport: "tcp" }, [/^--transport tcp sends unencrypted data/]],
    [{ target: "slurm", transport: "tls" }, [/^--transport tls needs --certificates: the folder/]],
    [{ target: "slurm", transport: "threads" }, [/^--transport threads: --target slurm starts processes/]],
    [{ target: "slurm", insecure: true, gpus: "1" }, [/^--gpus 1: Slurm allocates GPUs per node; give --nodes/]],
    [
      { target: "slurm", insecure: true, ranks: "4", nodes: "3" },
      [/^--nodes 3: 4 processes are not divisible by 3 nodes/],
    ],
    [{ target: "slurm", insecure: true, memory: "8GB" }, [/^--memory 8GB: must be a whole number with Ki/]],
    [{ target: "slurm", insecure: true, time: "90:00" }, [/^--time 90:00: must be hh:mm:ss/]],
    [{ target: "slurm", insecure: true, time: "00:00:00" }, [/^--time 00:00:00: must be hh:mm:ss above zero/]],
    [{ target: "slurm", insecure: true, queue: "a b" }, [/^--queue "a b": must be a name/]],
    [{ target: "slurm", insecure: true, name: "../x" }, [/^--name "\.\.\/x": must be letters/]],
    [{ target: "mpirun", hostfile: "h" }, [/^--transport mpi sends unencrypted data/]],
    [{ target: "mpirun", sshKey: "my keys/k" }, [/^--ssh-key "my keys\/k": its path has blanks or characters/]],
    [{ target: "mpirun", sshKey: "k;reboot" }, [/^--ssh-key "k;reboot": its path has/]],
    [
      { target: "slurm", insecure: true, sshTrustAnyHost: true },
      [/^--ssh-trust-any-host has no effect for --target slurm/],
    ],
    [{ target: "mpirun", certificates: "c" }, [/^--certificates c: transport mpi uses no certificates/]],
    [
      { target: "k8s-job", ...cluster, transport: "mpi", insecure: true },
      [/^--transport mpi: --target k8s-job starts no MPI/, /^--certificates/],
    ],
    [{ target: "k8s-job", ...cluster, output: "/abs" }, [/^--output "\/abs": must be a folder inside the claim/]],
    [{ target: "k8s-job", ...cluster, output: "a/../../b" }, [/^--output/]],
    [
      { target: "k8s-job", ...cluster, certificates: "Certs Folder" },
      [/^--certificates "Certs Folder": must be the name of a Secret/],
    ],
    [{ target: "k8s-job", ...cluster, image: "a b" }, [/^--image "a b"/]],
    [
      { target: "trainjob", ...cluster, nodes: "1" },
      [/^--nodes 1: without MPI a TrainJob runs one process per node, here 2/],
    ],
    [
      { target: "trainjob", image: "x", claim: "c", transport: "mpi", insecure: true },
      [/needs --nodes of 2 or more, not none/],
    ],
  ])("%j", (options, expected) => {
    const found = faults(options);
    expect(found).toHaveLength(expected.length);
    for (const [i, pattern] of expected.entries()) expect(found[i]).toMatch(pattern);
  });

  test("a file beside the job file, which pods do not get", () => {
    const relativePaths = [{ key: "model.file", value: "./my-model.ts" }];
    expect(faults({ target: "jobset", ...cluster }, { relativePaths })).toEqual([
      "model.file is ./my-model.ts, relative to the job file, but pods of --target jobset get only the job file; put the file into the image and name it by its absolute path there",
    ]);
    expect(faults({ target: "slurm", insecure: true }, { relativePaths })).toEqual([]);
  });

  test("a job with several ranks in a process", () => {
    expect(faults({ target: "mpirun", ranks: "3", transport: "tcp" }, { ranksPerProcess: 2 })[0]).toMatch(
      /^--ranks 3: the job runs 2 ranks per process/,
    );
  });

  test("the job's own settings count as well", () => {
    expect(faults({ target: "slurm" }, { transport: "tcp", insecure: true })).toEqual([]);
    expect(plan({ target: "slurm" }, { transport: "tcp", insecure: true }).transport).toBe("tcp");
    expect(faults({ target: "slurm" }, { transport: "tls", certificates: "certs" })).toEqual([]);
    expect(plan({ target: "local" }).transport).toBe("threads");
  });
});
