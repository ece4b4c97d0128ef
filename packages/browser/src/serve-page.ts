import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build, preview } from "vite";

export interface ServedPage {
  /** URL of the folder's `index.html`, with a slash at the end. */
  readonly url: string;
  /** Stops the server and deletes the bundle. */
  close(): Promise<void>;
}

/** Headers that make a page cross-origin isolated (COOP and COEP), so that its threads can share memory. */
const isolation: Readonly<Record<string, string>> = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

/**
 * Bundles a folder that contains an `index.html`, using the folder's `vite.config.ts` if it exists. Serves the bundle
 * on a free loopback port as a cross-origin isolated page.
 *
 * @param isolated whether to send the isolation headers. False serves the page without shared memory. Default: true.
 */
export const servePage = async (
  root: string,
  { isolated = true }: { readonly isolated?: boolean } = {},
): Promise<ServedPage> => {
  const outDir = await mkdtemp(join(tmpdir(), "skein-page-"));
  try {
    await build({
      root,
      logLevel: "warn",
      base: "./",
      build: { outDir, emptyOutDir: true, target: "esnext", chunkSizeWarningLimit: 100_000 },
    });
    const server = await preview({
      root,
      logLevel: "warn",
      build: { outDir },
      preview: { host: "127.0.0.1", port: 0, strictPort: true, open: false, headers: isolated ? isolation : {} },
    });
    const address = server.httpServer.address();
    if (address === null || typeof address === "string")
      throw new Error(
        `the preview server of ${root} does not listen on a port; check that port numbers of 127.0.0.1 are available`,
      );
    return {
      url: `http://127.0.0.1:${address.port}/`,
      close: async () => {
        await server.close();
        await rm(outDir, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await rm(outDir, { recursive: true, force: true });
    throw error;
  }
};
