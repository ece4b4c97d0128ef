import { existsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import {
  commandAction,
  ConfigError,
  exitCodes,
  type GlobalOptions,
  onInterrupt,
  shellQuote,
  writeStdout,
} from "@skein/cli/node";
import type { Command } from "commander";
import { pageAssets } from "./page-assets.ts";
import { serveWatch, type WatchServer } from "./watch-server.ts";
import { WatchedRuns } from "./watched-runs.ts";

export interface WatchOptions extends GlobalOptions {
  readonly port?: string;
}

const portOf = (text: string | undefined): number => {
  if (text === undefined) return 0;
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new ConfigError([`--port ${text}: must be a whole number from 0 to 65535; omit it to use a free port`]);
  return Number(text);
};

/** Starts a web server for the runs below a folder. @throws ConfigError if the port is in use. */
export const startWatch = async (root: string, port: number): Promise<WatchServer> => {
  try {
    return await serveWatch({ runs: new WatchedRuns(root), assets: await pageAssets(), port });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE" || code === "EACCES")
      throw new ConfigError([`--port ${port} cannot be listened on (${code}); omit it to use a free port`]);
    throw error;
  }
};

/**
 * Starts a web server that shows a new run and all runs in the same folder, until the new run ends.
 *
 * @param note Receives the line with the URL of the page.
 */
export const watchBeside = async (
  { job, output }: { readonly job: { readonly name: string }; readonly output?: string | undefined },
  note: (line: string) => void,
): Promise<WatchServer> => {
  const folder = output === undefined ? join("runs", job.name) : dirname(resolve(output));
  const server = await startWatch(folder, 0);
  note(`watch it at ${server.url} until it ends; later: skein-train watch ${shellQuote(folder)}`);
  return server;
};

/** Implements `skein-train watch`. Resolves when interrupted. */
const watchCommand = async (folder: string, options: WatchOptions): Promise<number> => {
  if (existsSync(folder) && !statSync(folder).isDirectory())
    throw new ConfigError([`${folder} is not a folder; name a folder that holds runs, such as runs`]);
  const server = await startWatch(folder, portOf(options.port));
  writeStdout(
    options.json === true ? `${JSON.stringify({ url: server.url })}\n` : `watching ${folder} at ${server.url}\n`,
  );
  await new Promise<void>((resolve) => {
    const release = onInterrupt(() => {
      release();
      resolve();
    });
  });
  await server.close();
  return exitCodes.ok;
};

/** Adds the command `skein-train watch`. @param finish Receives the exit code. */
export const addWatchCommand = (program: Command, finish: (code: number) => void): void => {
  program
    .command("watch")
    .description("serve a page on this machine that shows runs while they train")
    .argument("[folder]", "folder of runs, at any depth", "runs")
    .option("--port <number>", "port of 127.0.0.1; default: a free port")
    .addHelpText("after", "\nExample:\n  skein-train watch runs")
    .action(commandAction(finish, watchCommand));
};
