import { expect, test } from "vitest";
import { mpirun } from "./contestants.ts";

/** Returns the values that follow each flag, and the parameters that follow `--mca`, by name. */
const settings = (words: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    words.flatMap((word, i) => {
      if (word === "--mca") return [[words[i + 1]!, words[i + 2]!]];
      return word.startsWith("--bind") || word.startsWith("--map") ? [[word, words[i + 1]!]] : [];
    }),
  );

test("what Open MPI would choose by itself is fixed: binding, and how processes copy or which interface they take", () => {
  const two = mpirun(2, "vader", { bound: true, processors: 4 });
  expect(settings(two)).toMatchObject({
    "--bind-to": "core",
    "--map-by": "core",
    btl_vader_single_copy_mechanism: "cma",
  });
  const tcp = settings(mpirun(2, "tcp", { bound: true, processors: 4 }));
  expect(tcp).toMatchObject({ "--bind-to": "core", btl: "self,tcp", btl_tcp_if_include: "lo" });
});

test("ranks are bound nowhere when they outnumber processors, or have threads of their own", () => {
  const many = mpirun(8, "vader", { bound: true, processors: 4 });
  expect(settings(many)["--bind-to"]).toBe("none");
  expect(many).toContain("--oversubscribe");
  const ours = mpirun(4, "vader", { bound: false, processors: 4 });
  expect(settings(ours)).toMatchObject({ "--bind-to": "none", btl_vader_single_copy_mechanism: "cma" });
  expect(ours).not.toContain("--oversubscribe");
});
