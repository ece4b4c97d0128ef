import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/**
 * Commit of the running code, 12 digits, with `-dirty` if files differ from the commit. Pages and results in docs,
 * which a study itself writes, are ignored in that comparison. `unknown` outside a checkout.
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
