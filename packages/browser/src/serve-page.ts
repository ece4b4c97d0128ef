import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build, preview } from "vite";

export interface ServedPage {
  /** Of the folder's `index.html`, with a slash at the end. */
  readonly url: string;
  /** Stop serving and delete the bundle. */
  close(): Promise<void>;
}

/** What a page needs to be cross-origin isolated, hence to share memory between its threads: COOP and COEP. */
const isolation: Readonly<Record<string, string>> = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

/**
 * Bundle a folder with an `index.html`, as its `vite.config.ts` says where it has one, and serve the bundle on a
 * loopback port that is free, cross-origin isolated.
 *
 * @param isolated false leaves the isolation headers out, to see what a page does without shared memory.
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
      throw new Error(`the preview server of ${root} listens on no port`);
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
