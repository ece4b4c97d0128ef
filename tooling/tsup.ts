import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Options } from "tsup";
import { markPureConstants } from "./pure-constants.ts";

/** Matches `new URL("./worker.ts", import.meta.url)`, which sources use to refer to the file of a thread. */
const threadFile = /new URL\(\s*"(\.{1,2}\/[^"]+\.ts)"\s*,\s*import\.meta\.url\s*,?\s*\)/g;

const entryName = (path: string): string => basename(path, ".ts");

/**
 * Returns the files below `src` to which a `new URL` refers. Each of these files becomes a separate entry in `dist`.
 */
const threadEntries = (source: string): Record<string, string> => {
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter(
    (path) => path.endsWith(".ts") && !path.endsWith(".test.ts"),
  );
  const named = files.flatMap((file) =>
    [...readFileSync(join(source, file), "utf8").matchAll(threadFile)].map((match) =>
      join(source, file, "..", match[1]!),
    ),
  );
  return Object.fromEntries(named.map((path) => [entryName(path), path]));
};

/**
 * Returns the build settings of a published package: ESM only, with declarations, all files directly in `dist`. Files
 * of threads become separate entries, and each `new URL` that refers to such a file is rewritten.
 *
 * @param bundled Source folders of private packages with threads, which become part of the published package.
 */
export const library = ({
  entry,
  bundled = [],
  ...options
}: Omit<Options, "entry"> & {
  entry: readonly string[] | Record<string, string>;
  bundled?: readonly string[];
}): Options => {
  const doors = Array.isArray(entry)
    ? Object.fromEntries(entry.map((path: string) => [entryName(path), path]))
    : { ...(entry as Record<string, string>) };
  return {
    format: ["esm"],
    target: "es2024",
    platform: "neutral",
    tsconfig: "../../tsconfig.base.json",
    entry: Object.assign({}, doors, ...["src", ...bundled].map(threadEntries)) as Record<string, string>,
    dts: { entry: doors },
    external: [/^node:/],
    clean: true,
    treeshake: true,
    sourcemap: true,
    esbuildPlugins: [
      {
        name: "thread-files",
        setup: (build) => {
          build.onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, ({ path }) => ({
            contents: markPureConstants(readFileSync(path, "utf8"), path).replace(
              threadFile,
              (_, file: string) => `new URL("./${entryName(file)}.js", import.meta.url)`,
            ),
            loader: "ts",
          }));
        },
      },
    ],
    ...options,
  };
};
