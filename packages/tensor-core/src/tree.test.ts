import fc from "fast-check";
import { expect, test } from "vitest";
import { flattenTree, leafPaths, leavesAlong, mapTree, unflattenTree, zipTrees } from "./tree.ts";

/** Random keys, including names that all plain objects inherit. */
const keys = fc.oneof(fc.stringMatching(/^[a-z]{1,4}$/), fc.constantFrom("__proto__", "constructor", "toString"));

const trees = fc.letrec((tie) => ({
  tree: fc.oneof(
    { depthSize: "small" },
    fc.integer(),
    fc.array(tie("tree"), { maxLength: 3 }),
    fc
      .uniqueArray(fc.tuple(keys, tie("tree")), { selector: ([key]) => key, maxLength: 3 })
      .map((entries) => Object.fromEntries(entries) as unknown),
  ),
})).tree;

test("unflatten undoes flatten", () => {
  fc.assert(
    fc.property(trees, (tree) => {
      const { leaves, structure } = flattenTree(tree);
      expect(unflattenTree(structure, leaves)).toEqual(tree);
      expect(leafPaths(tree).length).toBe(leaves.length);
    }),
  );
});

test("leavesAlong finds the leaves of a tree exactly when it has the structure", () => {
  fc.assert(
    fc.property(trees, trees, (a, b) => {
      const { leaves, structure } = flattenTree(a);
      expect(leavesAlong(structure, a)).toEqual(leaves);
      const other = flattenTree(b);
      const same = JSON.stringify(other.structure) === JSON.stringify(structure);
      expect(leavesAlong(structure, b)).toEqual(same ? other.leaves : undefined);
    }),
    { numRuns: 500 },
  );
});

test("the order of record keys does not matter", () => {
  expect(flattenTree({ b: 2, a: 1 })).toEqual(flattenTree({ a: 1, b: 2 }));
});

test("mapTree passes the path of each leaf", () => {
  expect(mapTree({ a: [1, 2], b: 3 }, (leaf: number, path) => `${path}=${leaf}`)).toEqual({
    a: ["a.0=1", "a.1=2"],
    b: "b=3",
  });
});

test("zipTrees rejects trees of different structure and names both", () => {
  expect(zipTrees((a: number, b: number) => a + b, { x: 1 }, { x: 2 })).toEqual({ x: 3 });
  expect(() => zipTrees((a: number) => a, { x: 1 }, { y: 2 })).toThrow(
    /tree 2 of 2 has leaves \[y\], the first has \[x\]/,
  );
});

test("a spec counts as a leaf", () => {
  expect(flattenTree([{ dtype: "f32", shape: [2] }]).leaves).toEqual([{ dtype: "f32", shape: [2] }]);
});

test("inherited properties of plain objects are not leaves", () => {
  const { structure } = flattenTree({ toString: 1, constructor: 2 });
  expect(leavesAlong(structure, { a: 1, b: 2 })).toBeUndefined();
  expect(leavesAlong(structure, { constructor: 3, toString: 4 })).toEqual([3, 4]);
});
