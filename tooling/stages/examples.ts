import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Check, commandCheck } from "../check.ts";
import { codeBlocks } from "../markdown.ts";
import { quickStarts } from "../quick-starts.ts";
import { repository } from "../repository.ts";
import { shadersThatRunOnce } from "../shaders-that-run-once.ts";

/** Returns the TypeScript blocks of a Markdown text, in order. */
export const typescriptBlocks = (markdown: string): string[] =>
  codeBlocks(markdown)
    .filter(({ language }) => language === "ts")
    .map(({ text }) => text);

const workspaceFolders = (): string[] =>
  ["packages", "apps"].flatMap((parent) => readdirSync(join(repository, parent)).map((name) => join(parent, name)));

/**
 * Output of an example on a machine without a required system package. Such an example counts as skipped, not as
 * failed.
 */
export const missingPart: RegExp = /AdapterError: .*|MpiError: there is no MPI compiler.*|Chromium was not found.*/;

const exampleCheck = async (...call: Parameters<typeof commandCheck>): Promise<Check> => {
  const check = await commandCheck(...call);
  const missing = check.status === "failed" ? missingPart.exec(check.detail ?? "") : null;
  return missing === null ? check : { name: check.name, status: "skipped", detail: missing[0] };
};

const readmeChecks = async (env: Readonly<Record<string, string>>): Promise<Check[]> => {
  const checks: Check[] = [];
  for (const folder of [".", ...workspaceFolders()]) {
    const path = join(repository, folder, "README.md");
    const name = join(folder, "README.md");
    if (!existsSync(path)) {
      checks.push({
        name,
        status: "failed",
        detail: "there is no README.md; every package needs one with a runnable example",
      });
      continue;
    }
    const blocks = typescriptBlocks(readFileSync(path, "utf8"));
    if (blocks.length === 0 && folder.startsWith("packages"))
      checks.push({ name, status: "failed", detail: "it has no ```ts example" });
    // The workspace root has no dependencies on our packages, so its examples run in examples/.
    const cwd = join(repository, folder === "." ? "examples" : folder);
    for (const [index, block] of blocks.entries()) {
      checks.push(
        await exampleCheck(`${name} example ${index + 1}`, ["node", "--input-type=module-typescript"], {
          cwd,
          input: block,
          seconds: 180,
          env,
        }),
      );
    }
  }
  return checks;
};

/**
 * Runs each README's TypeScript examples as a reader would: with the package's dependencies, in its folder. BLAS tables
 * are stored in a separate cache, because a parallel run with different BLAS tables is rejected.
 *
 * @param built Whether imports of packages of this repository may load their compiled output.
 */
export const readmeStage = async (built: boolean): Promise<Check[]> => {
  const cache = mkdtempSync(join(tmpdir(), "skein-readme-"));
  try {
    return await readmeChecks({ ...shadersThatRunOnce, ...quickStarts(built), XDG_CACHE_HOME: cache });
  } finally {
    rmSync(cache, { recursive: true, force: true });
  }
};

/**
 * Runs the single-file examples.
 *
 * @param built Whether imports of packages of this repository may load their compiled output.
 */
export const examplesStage = async (built: boolean): Promise<Check[]> => {
  const checks: Check[] = [];
  const env = { ...shadersThatRunOnce, ...quickStarts(built) };
  for (const file of readdirSync(join(repository, "examples")).filter((name) => name.endsWith(".ts"))) {
    checks.push(await commandCheck(`examples/${file}`, ["node", `examples/${file}`], { seconds: 180, env }));
  }
  return checks;
};
