import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { subjectFault } from "./commit-subjects.ts";
import { repository } from "./repository.ts";

test.each([
  "collectives: resume links after a cut",
  "trainer, watch: reject a manifest with duplicate columns",
  "cpu-kernels: process rows of a product in columns",
])("%s: passes", (subject) => {
  expect(subjectFault(subject)).toBeUndefined();
});

test.each([
  ["A column that a manifest names twice is told", "names no area"],
  ["trainer: rejected a manifest with duplicate columns", '"rejected"; use the imperative'],
  ["trainer: rejects a manifest with duplicate columns", '"rejects"; use the imperative'],
  ["trainer: a manifest with duplicate columns is refused, and columns of one name are found at once", "characters"],
  ["trainer: reject a manifest.", "full stop"],
])("%s: fails", (subject, fault) => {
  expect(subjectFault(subject)).toContain(fault);
});

// Last commit before the rule for subjects was introduced.
const base = "a2906286dfea";

test("subjects of commits name an area and are imperative", (context) => {
  const { status, stdout } = spawnSync("git", ["log", "--no-merges", "--format=%s", `${base}..HEAD`], {
    cwd: repository,
    encoding: "utf8",
  });
  if (status !== 0) return context.skip("no history here: a shallow clone or an archive");
  const faults = stdout.split("\n").flatMap((subject) => {
    const fault = subject === "" ? undefined : subjectFault(subject);
    return fault === undefined ? [] : [`"${subject}" ${fault}`];
  });
  expect(faults).toEqual([]);
});
