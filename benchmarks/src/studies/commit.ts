import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/**
 * The commit of the code that runs, 12 digits, with `-dirty` where files differ from it; pages and results in docs,
 * which a study itself writes, are left out of that. `unknown` outside of a checkout.
 */
export const commitOfCode = (folder: string = root): string => {
  const git = (...args: string[]): string =>
    execFileSync("git", ["-C", folder, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  try {
    const commit = git("rev-parse", "--short=12", "HEAD");
    return git("status", "--porcelain", "--", ".", ":(exclude)docs") === "" ? commit : `${commit}-dirty`;
  } catch {
    return "unknown";
  }
};
