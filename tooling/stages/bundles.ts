import { gzipSync } from "node:zlib";
import { build, type Metafile } from "esbuild";
import type { Check } from "../check.ts";

interface Bundle {
  readonly from: string;
  /** Names imported by the bundled program. Default: all exports. */
  readonly names?: string;
  /**
   * Maximum size in bytes after minification and gzip. The limit is a fifth above the current size, so that larger
   * growth fails the check.
   */
  readonly maxBytes: number;
  /** Expected third-party packages in the bundle. Default: no third-party packages. */
  readonly others?: readonly string[];
}

const bundles: readonly Bundle[] = [
  { from: "@skein/collectives/algorithms", names: "ringAllReduce", maxBytes: 2_300 },
  { from: "@skein/compressors", names: "topKCompressor", maxBytes: 8_300 },
  { from: "@skein/models", names: "mlp", maxBytes: 8_300 },
  { from: "@skein/tensor-core", names: "NdArray", maxBytes: 4_100 },
  { from: "@skein/collectives", maxBytes: 46_000 },
  { from: "@skein/compressors", maxBytes: 55_000 },
  { from: "@skein/cost-model/planners", names: "planMgWfbpOptimal", maxBytes: 2_700 },
  { from: "@skein/cost-model", maxBytes: 15_400 },
  { from: "@skein/cost-model/planners", maxBytes: 13_200 },
  // Pricing uses the rules of all operators.
  { from: "@skein/cost-model/pricing", maxBytes: 54_000 },
  // The bundle loads one of three kernel builds, which are separate files.
  { from: "@skein/cpu-kernels", maxBytes: 71_000, others: ["wasm-feature-detect"] },
  { from: "@skein/data", maxBytes: 10_400 },
  // zod/mini, which parses the cache of measured devices, takes 6 KB.
  { from: "@skein/gpu-kernels", maxBytes: 175_400, others: ["zod"] },
  { from: "@skein/models", maxBytes: 23_800 },
  { from: "@skein/tensor-core", maxBytes: 97_700 },
];

/** Returns the packages with code in a bundle, identified by the last `node_modules` folder of each path. */
const packagesIn = ({ outputs }: Metafile): string[] => [
  ...new Set(
    Object.values(outputs)
      .flatMap(({ inputs }) => Object.entries(inputs))
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .flatMap(([path]) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []),
  ),
];

/** Measures the size of the browser bundle of a package, excluding parts that are loaded separately. */
const measure = async (
  { from, names }: Bundle,
  project: string,
): Promise<{ readonly bytes: number; readonly packages: readonly string[] }> => {
  const contents = names === undefined ? `export * from "${from}";` : `export { ${names} } from "${from}";`;
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir: project },
    absWorkingDir: project,
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    splitting: true,
    outdir: "bundles",
    write: false,
    metafile: true,
    logLevel: "silent",
  });
  const loadedAtOnce = new Set<string>();
  const visit = (path: string): void => {
    if (loadedAtOnce.has(path)) return;
    loadedAtOnce.add(path);
    for (const { path: next, kind } of metafile.outputs[path]!.imports) if (kind === "import-statement") visit(next);
  };
  visit(Object.keys(metafile.outputs).find((path) => metafile.outputs[path]!.entryPoint !== undefined)!);
  const texts = outputFiles.filter(({ path }) => [...loadedAtOnce].some((name) => path.endsWith(name)));
  return {
    bytes: gzipSync(Buffer.concat(texts.map(({ contents: text }) => text))).length,
    packages: packagesIn(metafile),
  };
};

/** For each package, bundles one export and all exports as a web page would, and checks size and included packages. */
export const bundleChecks = async (project: string): Promise<Check[]> => {
  const checks: Check[] = [];
  for (const bundle of bundles) {
    const { from, names, maxBytes, others = [] } = bundle;
    const name = `a bundle of ${names ?? "all"} of ${from} contains nothing superfluous`;
    try {
      const { bytes, packages } = await measure(bundle, project);
      const faults = [
        ...(bytes > maxBytes ? [`it has ${bytes} bytes after gzip, but the maximum is ${maxBytes}`] : []),
        ...packages
          .filter((one) => !one.startsWith("@skein/") && !others.includes(one))
          .map((one) => `it contains ${one}`),
      ];
      checks.push(
        faults.length === 0 ? { name, status: "passed" } : { name, status: "failed", detail: faults.join("\n") },
      );
    } catch (error) {
      checks.push({ name, status: "failed", detail: (error as Error).message });
    }
  }
  return checks;
};
