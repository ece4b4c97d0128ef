import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import { graphicsCards } from "./graphics-cards.ts";
import { Provenance } from "./provenance.ts";
import { readGit } from "./read-git.ts";
import { redactCommand } from "./redact-command.ts";
import { recordedEnvironment } from "./recorded-environment.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-provenance-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("only listed environment variables are recorded, and never a secret", () => {
  expect(
    recordedEnvironment({
      NODE_OPTIONS: "--max-old-space-size=4096",
      SKEIN_BLAS: "/opt/blas",
      SKEIN_TESTS: "full",
      SKEIN_IDENTITY: "a private key",
      SKEIN_SECRET: "s",
      SKEIN_CHECKPOINT_SECRET: "s",
      SKEIN_API_KEY: "k",
      SKEIN_PASSPHRASE: "p",
      AWS_ACCESS_KEY_ID: "a",
      HOME: "/home/x",
      OMP_NUM_THREADS: undefined,
    }),
  ).toEqual({ NODE_OPTIONS: "--max-old-space-size=4096", SKEIN_BLAS: "/opt/blas" });
});

test("words of a command are recorded, but not the value of a secret", () => {
  expect(
    redactCommand(["run", "job.yaml", "--set", "a.token=x", "--password", "hunter2", "--secret=s", "--set", "batch=4"]),
  ).toEqual(["run", "job.yaml", "--set", "a.token=…", "--password", "…", "--secret=…", "--set", "batch=4"]);
});

describe("git", () => {
  const git = (...words: string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], { cwd: repository, encoding: "utf8" });
  const repository = join(folder, "repository");
  mkdirSync(repository);

  test("commit, branch, and changes, whose diff is bounded", async () => {
    git("init", "-q", "-b", "side");
    writeFileSync(join(repository, "a.txt"), "one\n");
    git("add", ".");
    git("commit", "-q", "-m", "first");
    const commit = git("rev-parse", "HEAD").trim();
    expect(await readGit(repository)).toEqual({ commit, branch: "side", isChanged: false });
    writeFileSync(join(repository, "a.txt"), "two\n");
    const changed = await readGit(repository);
    expect(changed).toMatchObject({ commit, isChanged: true });
    expect(Buffer.from(changed!.changes!).toString()).toContain("+two");
    writeFileSync(join(repository, "a.txt"), "line of a large file\n".repeat(100_000));
    const large = await readGit(repository);
    expect([large!.isCut, large!.changes!.length]).toEqual([true, 2 ** 20]);
  });

  test("no program configured by the repository or the environment is started", async () => {
    const hostile = join(folder, "hostile");
    const started = join(folder, "started");
    const program = join(hostile, "program.sh");
    const inHostile = (...words: string[]): void =>
      void execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], { cwd: hostile });
    mkdirSync(join(hostile, "bin"), { recursive: true });
    inHostile("init", "-q");
    writeFileSync(join(hostile, ".gitattributes"), "*.txt filter=own diff=own merge=own\n*.bin filter=process\n");
    for (const name of ["a.txt", "b.txt", "c.bin"]) writeFileSync(join(hostile, name), "one\n");
    inHostile("add", ".");
    inHostile("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", repository, "sub");
    inHostile("commit", "-q", "-m", "first");
    for (const path of [program, join(hostile, "bin", "git"), join(hostile, "git")])
      writeFileSync(path, `#!/bin/sh\necho "$0 $*" >> ${started}\ncat\n`, { mode: 0o755 });
    for (const name of ["post-index-change", "fsmonitor-watchman"])
      writeFileSync(join(hostile, ".git/hooks", name), readFileSync(program), { mode: 0o755 });
    const settings = `[core]\n\tfsmonitor = ${program}\n\tpager = ${program}\n\tsshCommand = ${program}
[diff]\n\texternal = ${program}\n[diff "own"]\n\ttextconv = ${program}\n\tcommand = ${program}
[filter "own"]\n\tclean = ${program}\n\tsmudge = ${program}\n\trequired = true
[filter "process"]\n\tprocess = ${program}\n[alias]\n\tdiff = !${program}\n\trev-parse = !${program}\n`;
    for (const config of [".git/config", ".git/modules/sub/config"]) appendFileSync(join(hostile, config), settings);
    writeFileSync(join(hostile, ".gitmodules"), '[submodule "sub"]\n\tignore = none\n', { flag: "a" });
    writeFileSync(join(hostile, "a.txt"), "two\n");
    writeFileSync(join(hostile, "c.bin"), "two\n");
    writeFileSync(join(hostile, "sub/a.txt"), "changed in the submodule\n");
    vi.stubEnv("GIT_EXTERNAL_DIFF", program);
    vi.stubEnv("GIT_SSH_COMMAND", program);
    vi.stubEnv("PATH", `.${delimiter}bin${delimiter}${process.env["PATH"]}`);
    const facts = await readGit(hostile);
    vi.unstubAllEnvs();
    expect(Buffer.from(facts!.changes!).toString()).toMatch(/^-one\n\+two\n/m);
    expect(existsSync(started) && readFileSync(started, "utf8")).toBe(false);
  });

  test("changes of a second work tree are seen, and settings for comparing files apply", async () => {
    const tree = join(folder, "tree");
    git("worktree", "add", "-q", tree);
    expect(await readGit(tree)).toMatchObject({ branch: "tree", isChanged: false });
    chmodSync(join(tree, "a.txt"), 0o755);
    expect(await readGit(tree)).toMatchObject({ isChanged: true });
    git("config", "core.fileMode", "false");
    expect(await readGit(tree)).toMatchObject({ isChanged: false });
  });

  test("none outside of a repository", async () => {
    expect(await readGit(folder)).toBeUndefined();
    expect(await readGit(join(folder, "not-there"))).toBeUndefined();
  });
});

test("graphics cards, by files of Linux", () => {
  const root = join(folder, "root");
  const write = (path: string, text: string): void => {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  expect(graphicsCards(root)).toEqual([]);
  write("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H100\nIRQ: 7\n");
  write("sys/class/drm/card0/device/vendor", "0x10de\n");
  write("sys/class/drm/card0/device/device", "0x2330\n");
  write("sys/class/drm/card1/device/vendor", "0x1002\n");
  write("sys/class/drm/card1/device/device", "0x73bf\n");
  write("sys/class/drm/card1-DP-1/status", "connected\n");
  expect(graphicsCards(root)).toEqual(["NVIDIA H100", "PCI 0x1002:0x73bf"]);
});

test("a run records its start and its end, a resumed one its earlier starts too", async () => {
  const output = join(folder, "run");
  mkdirSync(output);
  const read = (): Record<string, unknown> =>
    JSON.parse(readFileSync(join(output, "provenance.json"), "utf8")) as Record<string, unknown>;
  const first = new Provenance(output, 10, "1.2.3");
  expect(await first.end({ how: "failed", reason: "loss is NaN" })).toBeUndefined();
  expect(read()).toMatchObject({ totalSteps: 10, pid: process.pid, ended: { how: "failed", reason: "loss is NaN" } });
  await new Provenance(output, 20, "1.2.3").end({ how: "finished" });
  expect(read()).toMatchObject({
    totalSteps: 20,
    ended: { how: "finished" },
    earlier: [{ totalSteps: 10, ended: { how: "failed" } }],
  });
  expect(readdirSync(output).filter((name) => name.endsWith(".tmp"))).toEqual([]);
});

test("a failed write is reported, and has no other effect", async () => {
  expect(await new Provenance(join(folder, "gone"), 10, "1.2.3").end({ how: "finished" })).toMatch(/was not written/);
});
