import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Pass } from "./kernel.ts";
import { gridGroups, gridOf, shaderModule } from "./shader.ts";

const pass: Pass = {
  label: "test",
  bindings: [
    { name: "x", type: "array<f32>", source: { input: 0 }, access: "read" },
    { name: "y", type: "array<f32>", source: { output: 0 }, access: "write" },
  ],
  workgroupSize: 64,
  groups: 3,
  code: "fn main(group: u32, lane: u32) { let x0 = x[lane]; let v = vec2<f32>(x0, x[0]); y[group] = v.x + v.y + f32(sizes.x); }",
  sizes: { x: 7 },
};

const variables = [
  { name: "x", type: "array<f32>", writable: false },
  { name: "y", type: "array<f32>", writable: true },
];

describe("grids", () => {
  test.each([
    [1, [1, 1, 1]],
    [65_535, [65_535, 1, 1]],
    [65_536, [32_768, 2, 1]],
    [10_000_000, [65_360, 153, 1]],
    [65_535 ** 2, [65_535, 65_535, 1]],
    [65_535 ** 2 + 1, [65_535, 65_535, 2]],
  ] as const)("%i workgroups", (groups, grid) => {
    expect(gridOf(groups)).toEqual(grid);
  });

  test("have enough workgroups, few more, and no dimension beyond the limit", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 32 - 1 }), (groups) => {
        const grid = gridOf(groups);
        expect(gridGroups(grid)).toBeGreaterThanOrEqual(groups);
        expect(Math.max(...grid)).toBeLessThanOrEqual(65_535);
        if (groups <= 65_535 ** 2) expect(gridGroups(grid) - groups).toBeLessThan(grid[1]);
      }),
    );
  });
});

describe("modules", () => {
  const parts = { pass, variables, renamed: new Map<string, string>(), guarded: false, sliced: false };

  test("declare variables, sizes and slice in the order of their slots", () => {
    const declared = [...shaderModule({ ...parts, sliced: true }).matchAll(/@binding\((\d)\) var<(.+?)> (\w+)/g)].map(
      ([, slot, space, name]) => [slot, space, name],
    );
    expect(declared).toEqual([
      ["0", "storage, read", "x"],
      ["1", "storage, read_write", "y"],
      ["2", "uniform", "sizes"],
      ["3", "uniform", "slice"],
    ]);
  });

  test("guard only grids that are too large, against the number of workgroups", () => {
    expect(shaderModule(parts)).not.toContain("return; }");
    expect(shaderModule({ ...parts, guarded: true })).toContain("if (local_group >= 3u) { return; }");
    expect(shaderModule({ ...parts, guarded: true, sliced: true })).toContain(
      "if (local_group >= slice.groups) { return; }",
    );
    expect(shaderModule({ ...parts, sliced: true })).toContain("main(local_group + slice.first, lane)");
  });

  test("rename complete words, but not longer words and members", () => {
    const code = shaderModule({ ...parts, variables: [variables[1]!], renamed: new Map([["x", "y"]]) });
    expect(code).toContain("let x0 = y[lane]; let v = vec2<f32>(x0, y[0]); y[group] = v.x + v.y + f32(sizes.x);");
  });

  test("enable features by their names, and pass a lane's subgroup coordinates", () => {
    const code = shaderModule({ ...parts, pass: { ...pass, features: ["f16", "subgroups"] } });
    expect(code).toContain("enable f16;");
    expect(code).toContain("enable subgroups;");
    expect(code).toContain("main(local_group, lane, subgroup_lane, subgroup_size)");
  });
});
