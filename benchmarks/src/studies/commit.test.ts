import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commitOfCode } from "./commit.ts";

test("a commit is dirty by its code, not by pages; outside of a checkout it is unknown", () => {
  const folder = mkdtempSync(join(tmpdir(), "skein-commit-"));
  try {
    expect(commitOfCode(folder)).toBe("unknown");
    const git = (...args: string[]): unknown =>
      execFileSync("git", [
        "-C",
        folder,
        "-c",
        "user.name=n",
        "-c",
        "user.email=e@e",
        "-c",
        "commit.gpgsign=false",
        ...args,
      ]);
    git("init", "--quiet");
    git("commit", "--quiet", "--allow-empty", "--no-verify", "-m", "m");
    mkdirSync(join(folder, "docs"));
    writeFileSync(join(folder, "docs/page.md"), "new");
    expect(commitOfCode(folder)).toMatch(/^[0-9a-f]{12}$/);
    writeFileSync(join(folder, "code.ts"), "new");
    expect(commitOfCode(folder)).toMatch(/^[0-9a-f]{12}-dirty$/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
