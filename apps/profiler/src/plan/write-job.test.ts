import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { writeJob } from "./write-job.ts";

test("keeps unchanged settings and comments, also inside a setting", () => {
  const folder = mkdtempSync(join(tmpdir(), "skein-profile-test-"));
  try {
    const [file, target] = [join(folder, "job.yaml"), join(folder, "planned.yaml")];
    writeFileSync(file, "# mine\nname: tiny # short\nevaluation: { batch: 64, everyEpochs: 2 }\n");
    writeJob(file, target, { "evaluation.batch": 8, "network.codec": "never", overlap: "dear" }, "faster");
    expect(readFileSync(target, "utf8")).toBe(
      "# faster\n\n# mine\nname: tiny # short\nevaluation: { batch: 8, everyEpochs: 2 }\nnetwork:\n  codec: never\noverlap: dear\n",
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});
