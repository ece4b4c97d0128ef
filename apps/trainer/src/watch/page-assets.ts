import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** What a browser loads, by its path. */
export type PageAssets = ReadonlyMap<string, { readonly type: string; readonly content: Uint8Array | string }>;

const shell = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page.css">
<title>Skein runs</title>
</head>
<body>
<div id="page"><p>Loading; this page needs JavaScript.</p></div>
<script type="module" src="/page.js"></script>
</body>
</html>
`;

const beside = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Of this package as it is published: made by its build. In a clone: bundled now, which takes a part of a second. */
const bundled = async (): Promise<{ readonly script: string | Uint8Array; readonly style: string | Uint8Array }> => {
  const [script, style] = [beside("./watch-page/page.js"), beside("./watch-page/page.css")];
  if (existsSync(script)) return { script: readFileSync(script), style: readFileSync(style) };
  const { bundlePage } = await import("./bundle-page.ts");
  return bundlePage();
};

export const pageAssets = async (): Promise<PageAssets> => {
  const { script, style } = await bundled();
  return new Map([
    ["/", { type: "text/html; charset=utf-8", content: shell }],
    ["/page.js", { type: "text/javascript; charset=utf-8", content: script }],
    ["/page.css", { type: "text/css; charset=utf-8", content: style }],
  ]);
};
