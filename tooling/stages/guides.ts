import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Check, run } from "../check.ts";
import { type CodeBlock, codeBlocks } from "../markdown.ts";
import { quickStarts } from "../quick-starts.ts";
import { repository } from "../repository.ts";
import { shadersThatRunOnce } from "../shaders-that-run-once.ts";

/**
 * Shell script that runs a block of a guide. Replaces `npx`, `npm install` and `npm create` by commands that use
 * packages of examples/ instead of the registry. Each block starts in the folder where the previous block ended, as in
 * a terminal.
 */
const shell = `set -euo pipefail
root=$SKEIN_GUIDE
trap 'pwd > "$root.place"' EXIT
# See vitest.config.ts.
node() { command node --no-memory-protection-keys "$@"; }
npx() {
  local package=$root/node_modules/$1/package.json
  [ -e "$package" ] || { echo "npx would look for $1 in a registry: examples/package.json has no $1" >&2; return 1; }
  local program
  program=$(command node -p 'Object.values(require(process.argv[1]).bin)[0]' "$package")
  npm_config_user_agent=npm/11.0.0 node "$root/node_modules/$1/$program" "\${@:2}"
}
npm() {
  if [ "$1" = create ]; then
    npm_config_user_agent=npm/11.0.0 node "$root/node_modules/create-\${2%@*}/src/main.ts" "\${@:3}"
    return
  fi
  [ "$1" = install ] || { command npm "$@"; return; }
  [ -e node_modules ] || ln -s "$root/node_modules" node_modules
  local package
  for package in "\${@:2}"; do
    [ -e "$root/node_modules/\${package%@[0-9^~]*}" ] || { echo "examples/package.json has no $package" >&2; return 1; }
  done
}
`;

/**
 * Returns the first expected line that is missing in an output. Expected lines must occur in order; the output may
 * contain other lines. `…` matches any text.
 */
export const missingLine = (expected: string, output: string): string | undefined => {
  const lines = output.split("\n").map((line) => line.trim());
  let next = 0;
  for (const line of expected.split("\n").map((text) => text.trim())) {
    if (line === "" || line === "…") continue;
    const literal = line.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const pattern = new RegExp(`^${literal.replaceAll("…", ".*")}$`);
    const at = lines.findIndex((text, i) => i >= next && pattern.test(text));
    if (at < 0) return line;
    next = at + 1;
  }
  return undefined;
};

/** Returns the role of a block in a guide: a file to write, a command, a program, or the output of the last command. */
const roleOf = ({ language, words }: CodeBlock): "file" | "shell" | "program" | "output" | undefined => {
  const file = words.find((word) => word !== "full");
  if (file !== undefined) return "file";
  return ({ sh: "shell", ts: "program", text: "output" } as const)[language];
};

/**
 * Runs a guide as a reader does, starting from an empty folder. A block with a file name after the language is written
 * to that file. bash runs `sh` blocks, and Node runs `ts` blocks. A `text` block is the expected output of the previous
 * block. The default run skips blocks with the word `full`, and their output. The first failure ends the run, because
 * later blocks depend on earlier blocks.
 *
 * @param own Environment variables in addition to those of this process.
 */
export const walkGuide = async (
  name: string,
  markdown: string,
  full: boolean,
  own: Readonly<Record<string, string>> = {},
): Promise<Check[]> => {
  const folder = mkdtempSync(join(tmpdir(), "skein-guide-"));
  const placeFile = `${folder}.place`;
  let workingFolder = folder;
  const checks: Check[] = [];
  /** Output of the last command. Null: the command was skipped. Undefined: no command has run yet. */
  let printed: string | null | undefined;
  try {
    symlinkSync(join(repository, "examples/node_modules"), join(folder, "node_modules"));
    let seen = 0;
    for (const block of codeBlocks(markdown)) {
      const before = markdown
        .split("\n")
        .slice(seen, block.line - 1)
        .join("\n");
      seen = block.line + block.text.split("\n").length;
      const check = `${name}:${block.line}`;
      const role = roleOf(block);
      const fail = (detail: string): number => checks.push({ name: check, status: "failed", detail });
      if (role === undefined) {
        fail(`${block.language || "unlabelled"} blocks are not run: add a file name, or use sh, ts or text`);
        break;
      }
      if (role === "file") {
        const path = block.words.find((word) => word !== "full")!;
        if (!before.includes(`\`${path}\``)) {
          fail(`the page does not show that this block is ${path}: write \`${path}\` in the text above it`);
          break;
        }
        const file = join(workingFolder, path);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, block.text);
        continue;
      }
      if (role === "output") {
        if (printed === undefined) {
          fail("no command precedes this output");
          break;
        }
        const missing = printed === null ? undefined : missingLine(block.text, printed);
        if (missing !== undefined) {
          fail(
            `the output of the previous block lacks (in this order) the line\n${missing}\nIt printed:\n${printed!.trim()}`,
          );
          break;
        }
        continue;
      }
      printed = null;
      if (block.words.includes("full") && !full) {
        checks.push({ name: check, status: "skipped", detail: "runs only in the full run" });
        continue;
      }
      const [command, input] =
        role === "shell"
          ? [["bash", "-s"], shell + block.text]
          : [["node", "--input-type=module-typescript"], block.text];
      const env = { ...shadersThatRunOnce, ...own, SKEIN_GUIDE: folder };
      const { code, output } = await run(command, { cwd: workingFolder, input, seconds: 180, env });
      if (existsSync(placeFile)) workingFolder = readFileSync(placeFile, "utf8").trimEnd();
      if (code !== 0) {
        fail(`exit code ${code}\n${output.trim()}`);
        break;
      }
      printed = output;
      checks.push({ name: check, status: "passed" });
    }
  } finally {
    for (const path of [folder, placeFile]) rmSync(path, { recursive: true, force: true });
  }
  return checks;
};

export interface GuidesStageOptions {
  /** Whether to run blocks with the word `full` as well. */
  readonly full: boolean;
  /** Whether imports of packages of this repository may load their compiled output. */
  readonly built: boolean;
}

/** Runs all guides, two at a time, because guides spend much of their time waiting for ranks. */
export const guidesStage = async ({ full, built }: GuidesStageOptions): Promise<Check[]> => {
  const waiting = globSync(["docs/README.md", "docs/guides/*.md"], { cwd: repository }).toSorted();
  const checks: Check[] = [];
  const walk = async (): Promise<void> => {
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift())
      checks.push(...(await walkGuide(path, readFileSync(join(repository, path), "utf8"), full, quickStarts(built))));
  };
  await Promise.all([walk(), walk()]);
  return checks;
};
