import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { operators } from "../ops/table.ts";

const packages = new URL("../../../", import.meta.url);

/**
 * Words of other things that are operators' names, too: regions of a memory plan, and what executors ask of
 * communicators.
 */
const regions = ["input"];
const requestKinds = ["all-reduce", "broadcast"];

const sourcesIn = (folder: string): string[] =>
  readdirSync(new URL(folder, packages), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .map((file) => `${folder}/${file}`);

const executors = ["cpu-kernels/src/executable.ts", "gpu-kernels/src/lower.ts", "gpu-kernels/src/executable.ts"];

const files = [
  ...[...sourcesIn("tensor-core/src/passes"), ...sourcesIn("tensor-core/src/memory")].map(
    (file) => [file, regions] as const,
  ),
  ...executors.map((file) => [file, [...regions, ...requestKinds]] as const),
];

test.each(files)("%s asks for facts of operators, not for their names", (file, otherWords) => {
  const code = readFileSync(new URL(file, packages), "utf8").replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, "");
  const words = [...code.matchAll(/(["'`])([a-z0-9-]+)\1/g)].map(([, , word]) => word!);
  expect(words.filter((word) => Object.hasOwn(operators, word) && !otherWords.includes(word))).toEqual([]);
});
