import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { leavesByPath } from "@skein/tensor-core/backend";
import { arrayRecords, batchTree, gatherBatch, shareRecords } from "./index.ts";
import { NdArray } from "@skein/tensor-core";

/** Arbitrary trees as users write them: names without dots, and lists below the root. */
const { named } = fc.letrec<{ named: Record<string, unknown>; child: unknown }>((tie) => ({
  named: fc.dictionary(fc.constantFrom("a", "b", "labels", "__proto__x", "x1"), tie("child"), {
    minKeys: 1,
    maxKeys: 3,
  }),
  child: fc.oneof({ maxDepth: 3 }, fc.nat(1000), fc.array(tie("child"), { minLength: 1, maxLength: 12 }), tie("named")),
}));

test("a tree split into paths is rebuilt from the paths in any order", () => {
  fc.assert(
    fc.property(named, fc.nat(), (tree, turn) => {
      const leaves = [...leavesByPath<number>(tree)];
      const rotated = [...leaves.slice(turn % leaves.length), ...leaves.slice(0, turn % leaves.length)];
      expect(batchTree(Object.fromEntries(rotated))).toEqual(tree);
    }),
  );
});

describe("records of a tree of arrays", () => {
  const records = arrayRecords({
    query: { tokens: NdArray.from([1, 2, 3, 4, 5, 6], [3, 2], "i32"), weight: NdArray.from([0.5, 1.5, 2.5]) },
    views: [NdArray.from([7, 8, 9], [3, 1], "u8"), NdArray.from([1, 0, 1], [3], "bool")],
  });

  test("have one field per path, and batches with the same tree", () => {
    expect(Object.keys(records.fields).sort()).toEqual(["query.tokens", "query.weight", "views.0", "views.1"]);
    const batch = batchTree(gatherBatch(shareRecords(records), [2, 0])) as {
      readonly query: { readonly tokens: NdArray; readonly weight: NdArray };
      readonly views: readonly NdArray[];
    };
    expect(batch.query.tokens.toNumbers()).toEqual([5, 6, 1, 2]);
    expect(batch.query.weight.toNumbers()).toEqual([2.5, 0.5]);
    expect(batch.views[0]!.shape).toEqual([2, 1]);
    expect(batch.views[1]!.toNumbers()).toEqual([1, 1]);
  });

  test.each<[object, RegExp]>([
    [{ a: NdArray.from([1]), b: { c: [1, 2] } }, /field "b\.c\.0" is 1, but must be an NdArray; .*NdArray\.from/],
    [
      { a: NdArray.from([1]), b: { c: NdArray.from([1, 2]) } },
      /field "b\.c" is \[2\], field "a" \[1\]; the first dimension/,
    ],
    [{ "a.b": NdArray.from([1]), a: NdArray.from([1]) }, /fields "a" and "a\.b" cannot both exist/],
    [{ a: [] }, /was given no arrays/],
  ])("report the faulty path: %#", (tree, line) => {
    expect(() => arrayRecords(tree as never)).toThrow(line);
  });
});
