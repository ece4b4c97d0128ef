import { gzipSync } from "node:zlib";
import { build, type Metafile } from "esbuild";
import type { Check } from "../check.ts";

interface Bundle {
  readonly from: string;
  /** What is imported; all there is by default. */
  readonly names?: string;
  /** Bytes after minifying and gzip, a fifth above what they are today: what grows more than that is looked at. */
  readonly mostBytes: number;
  /** Packages of others that it holds. */
  readonly others?: readonly string[];
}

const bundles: readonly Bundle[] = [
  { from: "@skein/collectives", names: "ringAllReduce", mostBytes: 2_300 },
  { from: "@skein/compressors", names: "topKCompressor", mostBytes: 8_300 },
  { from: "@skein/models", names: "mlp", mostBytes: 8_300 },
  { from: "@skein/tensor-core", names: "NdArray", mostBytes: 4_100 },
  { from: "@skein/collectives", mostBytes: 46_000 },
  { from: "@skein/compressors", mostBytes: 55_000 },
  { from: "@skein/cost-model", names: "mergeOptimally", mostBytes: 2_700 },
  // Its prices ask every operator for its rule.
  { from: "@skein/cost-model", mostBytes: 70_600 },
  // The kernels themselves are loaded apart, one build of three.
  { from: "@skein/cpu-kernels", mostBytes: 71_000, others: ["wasm-feature-detect"] },
  { from: "@skein/data", mostBytes: 10_400 },
  // What it keeps of a measured device is read by the small door of zod: 6 KB.
  { from: "@skein/gpu-kernels", mostBytes: 145_700, others: ["zod"] },
  { from: "@skein/models", mostBytes: 23_800 },
  { from: "@skein/tensor-core", mostBytes: 81_200 },
];

/** Packages that have bytes in a bundle; the last folder `node_modules` of a path says which one it is. */
const packagesIn = ({ outputs }: Metafile): string[] => [
  ...new Set(
    Object.values(outputs)
      .flatMap(({ inputs }) => Object.entries(inputs))
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .flatMap(([path]) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []),
  ),
];

/** What a bundle for browsers holds of a package, its parts that are loaded apart left out of the size. */
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

/** Bundle one thing and all things of each package, as a page would, and look at the size and at whose code it is. */
export const bundleChecks = async (project: string): Promise<Check[]> => {
  const checks: Check[] = [];
  for (const bundle of bundles) {
    const { from, names, mostBytes, others = [] } = bundle;
    const name = `a bundle of ${names ?? "all"} of ${from} holds nothing in vain`;
    try {
      const { bytes, packages } = await measure(bundle, project);
      const faults = [
        ...(bytes > mostBytes ? [`it has ${bytes} bytes after gzip, more than ${mostBytes}`] : []),
        ...packages
          .filter((one) => !one.startsWith("@skein/") && !others.includes(one))
          .map((one) => `it holds ${one}`),
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
