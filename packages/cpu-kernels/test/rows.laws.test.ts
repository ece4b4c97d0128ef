import { type Backend, referenceBackend } from "@skein/tensor-core";
import { checkRows, examples, groupedRows, productRows, rowCases } from "@skein/testing";
import fc from "fast-check";
import { describe, test } from "vitest";
import { Arena, createSharedMemory } from "../src/arena.ts";
import { backendOf } from "../src/cpu-backend.ts";
import { kernels } from "../src/kernel-table.ts";
import { soloTeam, TeamFunctions } from "../src/team/team.ts";
import { compileWasm, instantiateWasm, type WasmBuild } from "../src/wasm-build.ts";
import { shuffledTeam } from "./shuffled-team.ts";

/** Opens a backend that splits every kernel that can be split into `threads` parts. */
const openBackend = async (build: WasmBuild, threads: number): Promise<Backend> => {
  const memory = createSharedMemory(256 * 2 ** 20);
  const wasm = instantiateWasm(await compileWasm(build), memory);
  const functions = new TeamFunctions(wasm);
  return backendOf({
    arena: new Arena(memory),
    wasm,
    kernels,
    team: threads === 1 ? soloTeam(functions) : shuffledTeam(threads, functions),
  });
};

const builds = [
  ["the relaxed build", () => openBackend("relaxed", 1)],
  ["the relaxed build on three threads", () => openBackend("relaxed", 3)],
  ["the simd build", () => openBackend("simd", 1)],
  ["the scalar build", () => openBackend("scalar", 2)],
] as const;

describe.each([["the reference", () => Promise.resolve(referenceBackend())] as const, ...builds])(
  "rows of every operator do not depend on other rows on %s",
  async (_, open) => {
    const backend = await open();

    test.each(rowCases.map((row) => [row.name, row] as const))("%s", async (_name, row) => {
      await checkRows(row, backend);
    });
  },
);

describe.each(builds)("rows of products do not depend on other rows on %s", async (_, open) => {
  const backend = await open();

  test("at sizes around tiles and blocks", async () => {
    const problem = fc.record({
      rows: fc.constantFrom(2, 5, 6, 7, 8, 13, 17, 33),
      inner: fc.constantFrom(1, 3, 4, 511, 512, 513, 1025),
      columns: fc.constantFrom(1, 2, 3, 8, 15, 16, 17, 64, 400),
      transposeA: fc.boolean(),
      transposeB: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(problem, async ({ rows, inner, columns, ...transposes }) => {
        await checkRows(productRows(rows, inner, columns, transposes), backend);
      }),
      { numRuns: examples(12, 60), seed: 20_261_128 },
    );
  });

  test("in groups of any sizes", async () => {
    const problem = fc.record({
      counts: fc.array(fc.constantFrom(0, 1, 2, 6, 7, 13, 64), { minLength: 2, maxLength: 5 }),
      inner: fc.constantFrom(3, 40, 520),
      columns: fc.constantFrom(1, 3, 16, 33),
    });
    await fc.assert(
      fc.asyncProperty(problem, async ({ counts, inner, columns }) => {
        await checkRows(groupedRows([...counts, 2], inner, columns), backend);
      }),
      { numRuns: examples(8, 40), seed: 20_261_128 },
    );
  });
});
