import { build } from "esbuild";
import { expect, test } from "vitest";
import { markPureConstants } from "./pure-constants.ts";

const mark = (text: string): string => markPureConstants(text, "constants.ts");

test("marks calls in the initializers of constants, including nested ones, but not deferred calls and statements", () => {
  expect(mark("const a: X = f(1, new G());")).toBe("const a: X = /* @__PURE__ */ f(1, /* @__PURE__ */ new G());");
  for (const text of [
    "const d = () => f();",
    "start();",
    "let { k } = f();",
    "const w = await f();",
    "const c = class { x = f() };",
  ])
    expect(mark(text)).toBe(text);
});

test("wraps an initializer that may call a getter in a marked call", () => {
  expect(mark("export const rules = { ...more, a: f() };")).toBe(
    "export const rules = /* @__PURE__ */ (() => ({ ...more, a: f() }))();",
  );
  expect(mark("const a = b.c, d = 1;")).toBe("const a = /* @__PURE__ */ (() => (b.c))(), d = 1;");
  const thread = 'const file = new URL("./thread.ts", import.meta.url);';
  expect(mark(thread)).toBe(thread.replace("new", "/* @__PURE__ */ new"));
});

test("lets a bundler keep only used constants and statements of a module, with the same values", async () => {
  const text = `
    const make = <T>(value: T): T => { calls.push(value); return value; };
    const calls: unknown[] = [];
    const unused = make({ name: "unused" });
    const table = { ...unused, other: make("other") };
    export const part = table.other;
    export const used: string = [make("u"), ...make(["sed"])].join("");
    calls.push("statement");
    export { calls };`;
  const bundled = async (names: string): Promise<string> => {
    const { outputFiles } = await build({
      stdin: { contents: `export { ${names} } from "module"`, resolveDir: "/" },
      bundle: true,
      write: false,
      format: "esm",
      plugins: [
        {
          name: "module",
          setup: ({ onResolve, onLoad }) => {
            onResolve({ filter: /^module$/ }, () => ({ path: "module", namespace: "text" }));
            onLoad({ filter: /.*/, namespace: "text" }, () => ({ contents: mark(text), loader: "ts" }));
          },
        },
      ],
    });
    return outputFiles[0]!.text;
  };
  const load = async (code: string): Promise<Record<string, unknown>> =>
    import(`data:text/javascript,${encodeURIComponent(code)}`);
  const one = await bundled("used, calls");
  expect(one).not.toContain("unused");
  expect(await load(one)).toMatchObject({ used: "used", calls: ["u", ["sed"], "statement"] });
  const all = await bundled("used, part, calls");
  expect(await load(all)).toMatchObject({
    used: "used",
    part: "other",
    calls: [{ name: "unused" }, "other", "u", ["sed"], "statement"],
  });
});
