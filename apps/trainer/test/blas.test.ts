import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BlasError, buildBlas } from "@skein/blas/node";
import { matmul, type Tensor } from "@skein/tensor-core";
import { afterAll, afterEach, beforeEach, expect, test, type TestContext } from "vitest";
import { freePort, jobFolder, skeinTrain, startRank, startWith, stepLosses } from "./cli.ts";
import { expectTold } from "./run-ends.ts";

const built = mkdtempSync(join(tmpdir(), "skein-train-blas-"));
afterAll(() => rmSync(built, { recursive: true }));

/**
 * Message about what a BLAS build lacks on this machine. Undefined: a BLAS was built, and in its rewritten table all
 * products, convolutions and attention are faster with the BLAS.
 */
const missing: string | undefined = await (async () => {
  const product = {
    op: "matmul",
    fn: (a: Tensor, b: Tensor) => [matmul(a, b)] as const,
    shapes: [
      [8, 8],
      [8, 8],
    ],
  } as const;
  try {
    const { table } = await buildBlas({ output: built, kernels: [product as never] });
    const read = JSON.parse(readFileSync(table, "utf8")) as { readonly shapes: readonly object[] };
    const kinds = [
      ...["nn", "nt", "tn"].map((variant) => ({ op: "matmul", variant })),
      ...["conv2d", "conv2d-backward-input", "conv2d-backward-weight"].map((op) => ({ op, variant: "" })),
      ...["attention", "attention-backward"].map((op) => ({ op, variant: "causal" })),
    ];
    const shapes = kinds.map((kind) => ({ ...read.shapes[0], ...kind, wasmMicroseconds: 2, blasMicroseconds: 1 }));
    writeFileSync(table, JSON.stringify({ ...read, shapes }));
    return undefined;
  } catch (error) {
    if (error instanceof BlasError && error.code === "blas-missing") return error.message;
    throw error;
  }
})();
const onBlas = { SKEIN_BLAS: built };
/** Environment in which a BLAS built by the user who runs the tests is not found. */
const withoutBlas = { SKEIN_BLAS: "", XDG_CACHE_HOME: join(built, "no-cache") };

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

const needsBlas = (context: TestContext): void => (missing === undefined ? undefined : context.skip(missing));

const set = (...values: readonly string[]): string[] => values.flatMap((value) => ["--set", value]);

const losses = async (
  env: Readonly<Record<string, string>>,
  output: string,
  ...args: readonly string[]
): Promise<number[]> => {
  const { code, stderr } = await startWith({ env }, folder, "run", "job.yaml", "--output", output, ...args).ended;
  expect([code, stderr.match(/^\s+at .*/m)]).toEqual([0, null]);
  expect(/products by (OpenBLAS|BLIS|MKL) .* by table [0-9a-f]{12}/.test(stderr)).toBe(
    env === onBlas && !args.includes("blas=off"),
  );
  return stepLosses(join(folder, output));
};

const expectLossesWithout = async (
  [model, args]: readonly [string, readonly string[]],
  context: TestContext,
): Promise<void> => {
  needsBlas(context);
  const dense = [...args, ...set("compression={kind: identity}"), "--steps", "30"];
  const [on, off] = [await losses(onBlas, "on", ...dense), await losses(withoutBlas, "off", ...dense)];
  expect(on).toHaveLength(30);
  // Sums are computed in a different order, and each training step passes the difference on to the next step.
  on.forEach((loss, i) => expect(Math.abs(loss - off[i]!)).toBeLessThan(1e-3 * Math.abs(off[i]!)));
  // The run did use the BLAS. On some processors, a BLAS adds short sums in the same order as our kernels, but not sums
  // over patches.
  if (model === "a CNN") expect(on).not.toEqual(off);
};
test("a CNN has the same losses with a BLAS as without", (context) =>
  expectLossesWithout(["a CNN", set("model={kind: cnn, channels: [4, 8], hidden: 16}")], context));
test.for([
  ["an MLP", []],
  [
    "a GPT",
    set(
      "model={kind: gpt, layers: 2, heads: 2, width: 16}",
      "data={kind: moby-dick, window: 24, trainSamples: 320, testSamples: 20}",
      "evaluation.batch=10",
    ),
  ],
] as const)("%s has the same losses with a BLAS as without", { tags: "full" }, expectLossesWithout);

test("blas: off has the bits of a machine without one, and a run on a BLAS those of the same run", {
  tags: "full",
}, async (context) => {
  needsBlas(context);
  const off = await losses(withoutBlas, "without");
  expect(await losses(onBlas, "off", ...set("blas=off"))).toEqual(off);
  const on = await losses(onBlas, "on");
  expect(await losses(onBlas, "again")).toEqual(on);
  expect(await losses(onBlas, "processes", "--transport", "tcp")).toEqual(on);
});

test("a rank with a BLAS and one without cannot join one run: one line with both and the remedy", async (context) => {
  needsBlas(context);
  const port = await freePort();
  const args = ["--transport", "tcp", "--output", "run", ...set("network.joinSeconds=20")];
  const host = startRank({ folder, port, rank: 0, args, env: onBlas });
  const other = startRank({ folder, port, rank: 1, args, env: withoutBlas });
  const ended = await other.ended;
  host.child.kill("SIGINT");
  await host.ended;
  expect(ended.code).not.toBe(0);
  expect(ended.stderr).toMatch(
    /this process is of build skein-train \S+, products in WebAssembly, the coordinator of skein-train \S+, products by \S+ \S+.* by table \S+; .*blas: off/,
  );
});

test("a build whose library differs from the measured one is reported before training, with the remedy", async (context) => {
  needsBlas(context);
  const changed = mkdtempSync(join(tmpdir(), "skein-train-blas-changed-"));
  try {
    for (const name of ["skein-blas.node", "table.json"])
      writeFileSync(join(changed, name), readFileSync(join(built, name)));
    const table = JSON.parse(readFileSync(join(changed, "table.json"), "utf8")) as { readonly library: object };
    writeFileSync(
      join(changed, "table.json"),
      JSON.stringify({ ...table, library: { ...table.library, version: "0.0.1" } }),
    );
    const env = { SKEIN_BLAS: changed };
    expectTold(
      await startWith({ env }, folder, "run", "job.yaml").ended,
      /measured with \S+ 0\.0\.1.* blas build.* blas: off/s,
      1,
    );
    expect((await startWith({ env }, folder, "run", "job.yaml", ...set("blas=off")).ended).code).toBe(0);
  } finally {
    rmSync(changed, { recursive: true });
  }
});

test("a missing compiler: what to install", async () => {
  expectTold(
    await skeinTrain(folder, "blas", "build", "--compiler", "g++-that-is-not-here", "--output", "blas"),
    /apt install/,
    1,
  );
});
