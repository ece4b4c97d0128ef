import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { timelineStyles } from "@skein/report";
import { build } from "esbuild";
import { schemeRules } from "./page/scheme-rules.ts";

/**
 * Bundles the page and its style sheet for browsers. The build of this package calls this function, and so does a
 * server that runs from a clone of the repository.
 *
 * @returns files by name: `page.js`, `page.css`, and `trace.js`, which the page loads when a trace is opened.
 */
export const bundlePage = async (): Promise<ReadonlyMap<string, Uint8Array | string>> => {
  const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
  const { outputFiles } = await build({
    entryPoints: [
      { in: pathOf("./page/main.tsx"), out: "page" },
      { in: pathOf("./page/trace-script.ts"), out: "trace" },
      { in: pathOf("./page/page.css"), out: "page" },
    ],
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    outdir: "page",
    write: false,
    logLevel: "silent",
    legalComments: "none",
  });
  return new Map(
    outputFiles.map(({ path, contents, text }) => [
      basename(path),
      path.endsWith(".css") ? [schemeRules, timelineStyles, text].join("\n") : contents,
    ]),
  );
};
