import { join } from "node:path";
import { build as buildByEsbuild, type BuildOptions } from "esbuild";
import { build as buildByVite } from "vite";
import { type Check, run } from "../check.ts";

/** Output of tooling/consumer/server.ts if all packages work. */
const workingOutput = ["backend 9", "batches 7", "ranks 3 3"];

const missingThreadFiles = (folder: string): readonly (string | RegExp)[] => [
  "backend 9",
  ...[
    ["batches", "@skein/data", "prefetch-worker.js"],
    ["ranks", "@skein/collectives", "companion-worker.js"],
  ].map(
    ([part, from, file]) =>
      `${part} thread-file ${join(folder, file!)}, which ${from} starts a thread from, is not there: this program was bundled`,
  ),
];

const withoutModuleUrl = [
  "backend 9",
  /^batches thread-file .*bundle it as an ES module/,
  /^ranks thread-file .*bundle it as an ES module/,
];

interface Server {
  readonly name: string;
  /** Bundles the program of tooling/consumer into a folder. @returns the path of the file to run. */
  bundle(project: string, folder: string): Promise<string>;
  /** Returns the expected beginning of each line that the bundled program prints. */
  expected(folder: string): readonly (string | RegExp)[];
}

const esbuild =
  (options: BuildOptions, file: string = "server.js"): Server["bundle"] =>
  async (project, folder) => {
    await buildByEsbuild({
      absWorkingDir: project,
      entryPoints: { server: "server.ts" },
      outdir: folder,
      bundle: true,
      platform: "node",
      format: "esm",
      logLevel: "silent",
      ...options,
    });
    return join(folder, file);
  };

const vite =
  (noExternal: boolean): Server["bundle"] =>
  async (project, folder) => {
    await buildByVite({
      root: project,
      configFile: false,
      logLevel: "silent",
      build: { ssr: "server.ts", outDir: folder, emptyOutDir: true },
      ...(noExternal && { ssr: { noExternal: true } }),
    });
    return join(folder, "server.js");
  };

const threadFiles = {
  "companion-worker": "node_modules/@skein/collectives/dist/companion-worker.js",
  "prefetch-worker": "node_modules/@skein/data/dist/prefetch-worker.js",
};

const servers: readonly Server[] = [
  { name: "esbuild, our packages within", bundle: esbuild({}), expected: missingThreadFiles },
  {
    name: "esbuild, our packages within, as CommonJS",
    bundle: esbuild({ format: "cjs", outExtension: { ".js": ".cjs" } }, "server.cjs"),
    expected: () => withoutModuleUrl,
  },
  {
    name: "esbuild, files of threads bundled too",
    bundle: esbuild({ entryPoints: { server: "server.ts", ...threadFiles } }),
    expected: () => workingOutput,
  },
  { name: "esbuild, our packages outside", bundle: esbuild({ external: ["@skein/*"] }), expected: () => workingOutput },
  { name: "Vite for servers, our packages within", bundle: vite(true), expected: missingThreadFiles },
  { name: "Vite for servers", bundle: vite(false), expected: () => workingOutput },
];

const check = async ({ name, bundle, expected }: Server, project: string, index: number): Promise<Check> => {
  const title = `a bundled server: ${name}`;
  const folder = join(project, `server-${index}`);
  let file: string;
  try {
    file = await bundle(project, folder);
  } catch (error) {
    return { name: title, status: "failed", detail: (error as Error).message };
  }
  const { code, output } = await run(["node", file], { cwd: project, seconds: 60 });
  const lines = output.trim().split("\n");
  const right =
    code === 0 &&
    lines.length === expected(folder).length &&
    expected(folder).every((line, i) => (typeof line === "string" ? lines[i]!.startsWith(line) : line.test(lines[i]!)));
  return right
    ? { name: title, status: "passed" }
    : { name: title, status: "failed", detail: `exit code ${code}\n${output.trim()}` };
};

/**
 * Bundles a server program that starts threads with each bundler, and runs each bundle. A check passes if the threads
 * start, or if the error names the missing file and the fix.
 *
 * @param project Folder with the packages installed, and with the files of tooling/consumer.
 */
export const bundledServerChecks = async (project: string): Promise<Check[]> => {
  const checks: Check[] = [];
  for (const [index, server] of servers.entries()) checks.push(await check(server, project, index));
  return checks;
};
