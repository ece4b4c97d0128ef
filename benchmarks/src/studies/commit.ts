import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/**
 * Returns the commit of the running code, 12 digits, with `-dirty` if files outside docs differ from the commit.
 * Studies write pages and results to docs, so differences there are ignored. `unknown` outside a checkout.
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
