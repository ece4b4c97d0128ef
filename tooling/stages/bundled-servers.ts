import { join } from "node:path";
import { build as buildByEsbuild, type BuildOptions } from "esbuild";
import { build as buildByVite } from "vite";
import { type Check, run } from "../check.ts";

/** What tooling/consumer/server.ts prints where all of it works. */
const works = ["backend 9", "batches 7", "ranks 3 3"];

const leftBehind = (folder: string): readonly (string | RegExp)[] => [
  "backend 9",
  ...[
    ["batches", "@skein/data", "prefetch-worker.js"],
    ["ranks", "@skein/collectives", "companion-worker.js"],
  ].map(
    ([part, from, file]) =>
      `${part} thread-file ${join(folder, file!)}, which ${from} starts a thread from, is not there: this program was bundled`,
  ),
];

const withoutPlace = [
  "backend 9",
  /^batches thread-file .*bundle it as an ES module/,
  /^ranks thread-file .*bundle it as an ES module/,
];

interface Server {
  readonly name: string;
  /** Bundle the program of tooling/consumer into a folder. @returns the file to run. */
  bundle(project: string, folder: string): Promise<string>;
  /** The beginning of each line that it must print. */
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
  { name: "esbuild, our packages within", bundle: esbuild({}), expected: leftBehind },
  {
    name: "esbuild, our packages within, as CommonJS",
    bundle: esbuild({ format: "cjs", outExtension: { ".js": ".cjs" } }, "server.cjs"),
    expected: () => withoutPlace,
  },
  {
    name: "esbuild, files of threads bundled too",
    bundle: esbuild({ entryPoints: { server: "server.ts", ...threadFiles } }),
    expected: () => works,
  },
  { name: "esbuild, our packages outside", bundle: esbuild({ external: ["@skein/*"] }), expected: () => works },
  { name: "Vite for servers, our packages within", bundle: vite(true), expected: leftBehind },
  { name: "Vite for servers", bundle: vite(false), expected: () => works },
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
 * Bundle a program that starts our threads as servers are bundled, and run it: its threads start, or it says which file
 * was left behind and what to do, as the cause of the call that needed it.
 *
 * @param project has the packages installed, and the files of tooling/consumer.
 */
export const bundledServerChecks = async (project: string): Promise<Check[]> => {
  const checks: Check[] = [];
  for (const [index, server] of servers.entries()) checks.push(await check(server, project, index));
  return checks;
};
