import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { AddonSources } from "./addon-cache.ts";
import { nodeApiVersion } from "./node-api-version.ts";

/** Thrown if a compiler is missing or fails. The message is one line, to which the calling package adds advice. */
export class CompilerError extends Error {
  override name = "CompilerError";

  readonly isMissing: boolean;

  constructor(message: string, isMissing: boolean, cause: unknown) {
    super(message, { cause });
    this.isMissing = isMissing;
  }
}

const run = promisify(execFile);

/**
 * Runs a compiler.
 *
 * @returns output of the compiler.
 * @throws CompilerError.
 */
export const runCompiler = async (compiler: string, args: readonly string[]): Promise<string> => {
  try {
    const { stdout } = await run(compiler, args, { maxBuffer: 2 ** 26 });
    return stdout;
  } catch (error) {
    const { code, stderr } = error as NodeJS.ErrnoException & { stderr?: string };
    if (code === "ENOENT" || code === "EACCES")
      throw new CompilerError(`the compiler "${compiler}" was not found`, true, error);
    // The compiler's first error, or the error of a compiler wrapper about a missing compiler.
    const line =
      (stderr ?? "").split("\n").find((text) => /error|not found|no such/i.test(text)) ??
      (stderr ?? String(error)).split("\n")[0];
    throw new CompilerError(`${compiler} failed: ${line!.trim()}`, false, error);
  }
};

export interface CompileOptions {
  readonly compiler: string;
  readonly sources: AddonSources;
  readonly output: string;
  /** Folders of headers, including the headers of Node-API. */
  readonly include: readonly string[];
  readonly defines?: readonly string[];
  readonly libraries?: readonly string[];
}

/**
 * Compiles an addon.
 *
 * @throws CompilerError.
 */
export const compileAddon = async (options: CompileOptions): Promise<void> => {
  const { compiler, sources, output, include, defines = [], libraries = [] } = options;
  await runCompiler(compiler, [
    "-std=c++17",
    "-O3",
    "-shared",
    "-fPIC",
    "-fvisibility=hidden", // Separates the symbols of two addons in one process, for two libraries.
    // Functions of Node are provided by the process.
    ...(process.platform === "darwin" ? ["-undefined", "dynamic_lookup"] : []),
    ...[`NAPI_VERSION=${nodeApiVersion}`, ...defines].map((text) => `-D${text}`),
    ...include.map((folder) => `-I${folder}`),
    ...sources.files().filter((path) => path.endsWith(".cc")),
    "-o",
    output,
    ...libraries.map((name) => `-l${name}`),
  ]);
};
