import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { operators } from "../src/ops/table.ts";

const packages = new URL("../../", import.meta.url);

/** Operator names that are also names of memory regions. Not counted as uses of operators. */
const memoryRegions = ["input"];
const requestKinds = [
  "all-reduce",
  "reduce-scatter",
  "all-gather",
  "all-to-all",
  "broadcast",
  "reduce",
  "send-receive",
];
const reductions = ["sum"];

/** Files that may contain operator names: the files of operators, and the functions that emit operators. */
const naming = /^tensor-core\/src\/(ops|functions)\//;

/** Words that look like operator names but are allowed, by file. The comment of each entry states the reason. */
const otherWords: { readonly [file: string]: readonly string[] } = {
  // Communicator requests have the names of their collectives.
  "tensor-core/src/communicator.ts": [...requestKinds, ...reductions],
  "tensor-core/src/execution/collective-plan.ts": [...memoryRegions, ...reductions],
  "tensor-core/src/execution/argument-loan.ts": memoryRegions,
  "tensor-core/src/memory/memory-plan.ts": memoryRegions,
  // Message of an error that is created only for its stack.
  "tensor-core/src/errors.ts": ["where"],
  "cpu-kernels/src/executable.ts": [...memoryRegions, ...requestKinds],
  "gpu-kernels/src/lower.ts": [...memoryRegions, ...requestKinds],
  "gpu-kernels/src/executable.ts": [...memoryRegions, ...requestKinds],
};

const sourcesIn = (folder: string): string[] =>
  readdirSync(new URL(folder, packages), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .map((file) => `${folder}/${file}`);

const executors = ["cpu-kernels/src/executable.ts", "gpu-kernels/src/lower.ts", "gpu-kernels/src/executable.ts"];

const files = [...sourcesIn("tensor-core/src").filter((file) => !naming.test(file)), ...executors];

test.each(files)("%s queries properties of operators, not their names", (file) => {
  const code = readFileSync(new URL(file, packages), "utf8").replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, "");
  const words = [...code.matchAll(/(["'`])([a-z0-9-]+)\1/g)].map(([, , word]) => word!);
  expect(words.filter((word) => Object.hasOwn(operators, word) && otherWords[file]?.includes(word) !== true)).toEqual(
    [],
  );
});
