import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { schemeRules } from "./page/scheme-rules.ts";

/** Bundle the page and its style for browsers; the build of this package and a server in a clone call it. */
export const bundlePage = async (): Promise<{ readonly script: Uint8Array; readonly style: string }> => {
  const place = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
  const { outputFiles } = await build({
    entryPoints: { page: place("./page/main.tsx"), style: place("./page/page.css") },
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
  const [script, style] = [".js", ".css"].map((end) => outputFiles.find(({ path }) => path.endsWith(end))!);
  return { script: script!.contents, style: `${schemeRules}\n${style!.text}` };
};
