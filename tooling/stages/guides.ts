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
 * What `npx`, `npm install` and `npm create` do for a reader, without a registry: packages are those of examples/.
 * Where a block ends, the next one begins, as in a terminal.
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
 * The line of an expected output that an output lacks, if any: its lines stand in the output in this order, perhaps
 * with others between them, `…` in place of what differs from run to run.
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

/** What a block is to a guide: a file that is written, a command, or what the last command prints. */
const roleOf = ({ language, words }: CodeBlock): "file" | "shell" | "program" | "output" | undefined => {
  const file = words.find((word) => word !== "full");
  if (file !== undefined) return "file";
  return ({ sh: "shell", ts: "program", text: "output" } as const)[language];
};

/**
 * Walk through a guide as its reader does, from an empty folder on: blocks with a file's name behind the language are
 * written to that file, `sh` is run by bash, `ts` by Node, and `text` is what the block before it prints. A block with
 * the word `full` is left out of the default run, and what it prints, too. The first fault ends the walk: the rest
 * rests on it.
 *
 * @param own environment beside that of this process.
 */
export const walkGuide = async (
  name: string,
  markdown: string,
  full: boolean,
  own: Readonly<Record<string, string>> = {},
): Promise<Check[]> => {
  const folder = mkdtempSync(join(tmpdir(), "skein-guide-"));
  const placeFile = `${folder}.place`;
  let place = folder;
  const checks: Check[] = [];
  /** By the last command; null where that was left out. */
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
        fail(
          `nobody runs ${block.language || "a block without a language"}: name the file that it is, or use sh, ts or text`,
        );
        break;
      }
      if (role === "file") {
        const path = block.words.find((word) => word !== "full")!;
        if (!before.includes(`\`${path}\``)) {
          fail(`a page does not show that this is ${path}: write \`${path}\` in the words above it`);
          break;
        }
        const file = join(place, path);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, block.text);
        continue;
      }
      if (role === "output") {
        if (printed === undefined) {
          fail("nothing ran before it, so nothing prints this");
          break;
        }
        const missing = printed === null ? undefined : missingLine(block.text, printed);
        if (missing !== undefined) {
          fail(
            `what ran before it has no line (in this order) that reads\n${missing}\nIt printed:\n${printed!.trim()}`,
          );
          break;
        }
        continue;
      }
      printed = null;
      if (block.words.includes("full") && !full) {
        checks.push({ name: check, status: "skipped", detail: "only the full run takes the time for it" });
        continue;
      }
      const [command, input] =
        role === "shell"
          ? [["bash", "-s"], shell + block.text]
          : [["node", "--input-type=module-typescript"], block.text];
      const env = { ...shadersThatRunOnce, ...own, SKEIN_GUIDE: folder };
      const { code, output } = await run(command, { cwd: place, input, seconds: 180, env });
      if (existsSync(placeFile)) place = readFileSync(placeFile, "utf8").trimEnd();
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
  /** Walk through blocks with the word `full`, too. */
  readonly full: boolean;
  /** Whether other packages may be read as they ship. */
  readonly built: boolean;
}

/** Walk through each guide, two at a time: much of a walk waits for ranks that wait for one another. */
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
