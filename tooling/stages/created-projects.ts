import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Check, type Outcome, run } from "../check.ts";

interface CreateOptions {
  /** Path of the installed command `create-skein`. */
  readonly create: string;
  /** `file:` URLs of tarballs by package name. The tarballs are used instead of the registry's packages. */
  readonly tarballs: Readonly<Record<string, string>>;
  readonly scratch: string;
  readonly pnpm: string;
  readonly full: boolean;
}

interface Manager {
  readonly name: "npm" | "pnpm" | "yarn";
  readonly words: readonly string[];
  readonly install: readonly string[];
  /** Configures a project to use the tarballs. */
  prepare(project: string, tarballs: CreateOptions["tarballs"]): void;
}

const changeManifest = (project: string, change: (manifest: Record<string, unknown>) => object): void => {
  const path = join(project, "package.json");
  const manifest = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
  writeFileSync(path, JSON.stringify({ ...manifest, ...change(manifest) }, undefined, 2));
};

/** Replaces the direct dependencies of a project by tarballs. */
const directly = (
  { dependencies }: Record<string, unknown>,
  tarballs: CreateOptions["tarballs"],
): Record<string, unknown> => ({
  dependencies: Object.fromEntries(
    Object.entries(dependencies as Record<string, string>).map(([name, range]) => [name, tarballs[name] ?? range]),
  ),
});

const managersOf = ({ pnpm, scratch }: CreateOptions): Readonly<Record<Manager["name"], Manager>> => ({
  npm: {
    name: "npm",
    words: ["npm"],
    install: ["install", "--prefer-offline", "--no-audit", "--no-fund"],
    prepare: (project, tarballs) =>
      changeManifest(project, (manifest) => ({ ...directly(manifest, tarballs), overrides: tarballs })),
  },
  pnpm: {
    name: "pnpm",
    words: [pnpm],
    install: ["install", "--prefer-offline", "--no-frozen-lockfile"],
    // JSON is valid YAML.
    prepare: (project, tarballs) =>
      appendFileSync(join(project, "pnpm-workspace.yaml"), `overrides: ${JSON.stringify(tarballs)}\n`),
  },
  yarn: {
    name: "yarn",
    words: ["npx", "--yes", "yarn@1.22.22"],
    // A separate cache, because Yarn caches tarballs by name and version, and would use tarballs of an earlier run.
    install: ["install", "--prefer-offline", "--cache-folder", join(scratch, "yarn-cache")],
    prepare: (project, tarballs) =>
      changeManifest(project, (manifest) => ({ ...directly(manifest, tarballs), resolutions: tarballs })),
  },
});

const offline = /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ETIMEDOUT|ENOTCACHED)\b/;

/** Expected output of each script, by template. */
const walks = {
  own: {
    start: ["runs/spirals/1", "100.00 % right", "recall0 1.000"],
    resume: ["resuming from runs/spirals/1/checkpoints/step-00001200", "step 1250: "],
    "resume options": ["--steps", "1250"],
  },
  text: {
    start: ["runs/text/1", "bits per byte"],
    resume: ["resuming from runs/text/1/checkpoints/step-00000400", "step 410: "],
    "resume options": ["--steps", "410"],
  },
  images: {
    start: ["runs/digits/1", "% right"],
    resume: ["resuming from runs/digits/1/checkpoints/step-00000624", "step 630: "],
    "resume options": ["--steps", "630"],
  },
} as const;

/** Creates a project, installs it, and runs its scripts. */
const projectChecks = async (
  template: keyof typeof walks,
  manager: Manager,
  { create, tarballs, scratch }: CreateOptions,
): Promise<Check[]> => {
  const checks: Check[] = [];
  const folder = join(scratch, `created-by-${manager.name}`);
  mkdirSync(folder, { recursive: true });
  const project = join(folder, template);
  // A bundler in this process may have set NODE_ENV to production, which makes package managers omit development tools.
  const env = { npm_config_user_agent: `${manager.name}/1.0.0`, NODE_PATH: "", NODE_ENV: "" };
  const check = (what: string, { code, output }: Outcome, required: readonly string[]): boolean => {
    const name = `${template} of create-skein, ${manager.name}: ${what}`;
    const missing = required.filter((text) => !output.includes(text));
    const passed = code === 0 && missing.length === 0;
    checks.push(
      passed
        ? { name, status: "passed" }
        : {
            name,
            status: "failed",
            detail: `exit code ${code}\n${output}\nmissing in the output: ${missing.join(" and ")}`,
          },
    );
    return passed;
  };
  const created = await run([create, template, "--template", template], { cwd: folder, env });
  if (!check("is written", created, [`cd ${template} && ${manager.name} install\n  ${manager.name} start`]))
    return checks;
  manager.prepare(project, tarballs);
  const command = (words: readonly string[]): Promise<Outcome> =>
    run([...manager.words, ...words], { cwd: project, env });
  const installed = await command(manager.install);
  if (installed.code !== 0 && offline.test(installed.output)) {
    const detail = `the registry is not reachable:\n${installed.output.trim()}`;
    return [...checks, { name: `${template} of create-skein, ${manager.name}`, status: "skipped", detail }];
  }
  if (!check("installs", installed, [])) return checks;
  const { start, resume, "resume options": options } = walks[template];
  const dashes = manager.name === "npm" ? ["--"] : [];
  check("types", await command(["run", "typecheck"]), []);
  check("test", await command(["test"]), ["fail 0"]);
  check("start", await command(["start"]), start);
  check("resume", await command(["run", "resume", ...dashes, ...options]), resume);
  return checks;
};

/** Creates projects as a new user does: create, install, test, train, resume. */
export const createdProjectChecks = async (options: CreateOptions): Promise<Check[]> => {
  const { npm, pnpm, yarn } = managersOf(options);
  const chosen = [
    ["own", npm],
    ...(options.full
      ? ([
          ["images", npm],
          ["text", npm],
          ["images", pnpm],
          ["own", yarn],
        ] as const)
      : []),
  ] as const;
  const checks: Check[] = [];
  for (const [template, manager] of chosen) checks.push(...(await projectChecks(template, manager, options)));
  return checks;
};
