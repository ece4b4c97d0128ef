import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Files loaded by browsers, by URL path. */
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

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/**
 * Returns the bundled page. The published package contains the bundle; in a clone of the repository, the page is
 * bundled now, which takes a fraction of a second.
 */
const bundled = async (): Promise<ReadonlyMap<string, Uint8Array | string>> => {
  const folder = pathOf("./watch-page");
  if (existsSync(folder)) return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
  const { bundlePage } = await import("./bundle-page.ts");
  return bundlePage();
};

export const pageAssets = async (): Promise<PageAssets> => {
  const files = [...(await bundled())].map(([name, content]) => {
    const type = `text/${name.endsWith(".css") ? "css" : "javascript"}; charset=utf-8`;
    return [`/${name}`, { type, content }] as const;
  });
  return new Map([["/", { type: "text/html; charset=utf-8", content: shell }], ...files]);
};
