import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { createRequire } from "node:module";
import { type Check, commandCheck } from "../check.ts";

/** Compiler options per host, and the programs of tooling/consumer that run on the host. */
const hosts = {
  node: { lib: ["es2024"], types: ["node"], files: ["everywhere.ts", "in-node.ts"] },
  worker: { lib: ["es2024", "webworker"], types: [], files: ["everywhere.ts"] },
  page: { lib: ["es2024", "dom", "dom.iterable"], types: [], files: ["everywhere.ts"] },
  "node with dom": { lib: ["es2024", "dom"], types: ["node"], files: ["everywhere.ts", "in-node.ts"] },
} as const;

interface Setting {
  /** Name of the compiler's package alias in tooling/package.json. */
  readonly compiler: "typescript-5.7" | "typescript-5.9" | "typescript" | "typescript-7";
  readonly resolution: "node16" | "nodenext" | "bundler";
  readonly host: keyof typeof hosts;
}

// Settings in which each pair of compiler and resolution, of compiler and host, and of resolution and host occurs once.
// Compiling all combinations would take half a minute.
const settings: readonly Setting[] = [
  { compiler: "typescript-5.7", resolution: "nodenext", host: "node" },
  { compiler: "typescript-5.7", resolution: "bundler", host: "page" },
  { compiler: "typescript-5.9", resolution: "bundler", host: "node" },
  { compiler: "typescript-5.9", resolution: "nodenext", host: "worker" },
  { compiler: "typescript", resolution: "nodenext", host: "node with dom" },
  { compiler: "typescript", resolution: "bundler", host: "worker" },
  { compiler: "typescript-7", resolution: "node16", host: "node" },
  { compiler: "typescript-7", resolution: "bundler", host: "page" },
];

const compile = ({ compiler, resolution, host }: Setting, project: string): Promise<Check> => {
  const { lib, types, files } = hosts[host];
  const module = resolution === "bundler" ? "esnext" : resolution;
  const config = `tsconfig.${compiler}-${resolution}-${host.replaceAll(" ", "-")}.json`;
  const compilerOptions = {
    noEmit: true,
    strict: true,
    skipLibCheck: false,
    target: "es2022",
    module,
    moduleResolution: resolution,
    lib,
    types,
  };
  writeFileSync(join(project, config), JSON.stringify({ compilerOptions, files }));
  const folder = dirname(createRequire(import.meta.url).resolve(`${compiler}/package.json`));
  return commandCheck(
    `${compiler}, ${resolution}, ${host}: types from the tarballs`,
    ["node", join(folder, "bin/tsc"), "-p", config],
    {
      cwd: project,
    },
  );
};

/**
 * Compiles programs that use all packages, with various compilers and settings, and also checks our declarations.
 *
 * @param project Folder with the packages installed, and with the files of tooling/consumer.
 */
export const consumerTypeChecks = async (project: string): Promise<Check[]> => {
  const waiting = [...settings];
  const checks: Check[] = [];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
      checks.push(await compile(next, project));
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  return checks;
};
