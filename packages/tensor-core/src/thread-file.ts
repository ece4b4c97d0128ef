import { SkeinError } from "./errors.ts";

/**
 * Thrown if the source file of a worker thread does not exist at the expected path, because a bundler did not copy the
 * file.
 */
export class ThreadFileError extends SkeinError {
  override name = "ThreadFileError";

  /** Expected path of the file. Undefined if the code runs in a bundle that cannot determine its own location. */
  readonly file: string | undefined;

  constructor(file: string | undefined, packageName: string) {
    const inPlace = file?.includes(`/${packageName}/dist/`) === true;
    const problem =
      file === undefined
        ? `a file that ${packageName} starts a thread from cannot be named: this program was bundled into a format without import.meta.url; bundle it as an ES module, and`
        : `${file}, which ${packageName} starts a thread from, is not there: ${inPlace ? "the package is damaged; install it again" : "this program was bundled, and bundlers leave such files behind;"}`;
    const cure =
      `keep the package out of the bundle (esbuild: --external:${packageName}; Vite: ssr.external), ` +
      `or bundle ${packageName}/dist/${file?.slice(file.lastIndexOf("/") + 1) ?? "*-worker.js"} too, as a program of its own, to that place`;
    super("user", "thread-file", inPlace ? problem : `${problem} ${cure}`);
    this.file = file;
  }
}

/**
 * Returns the URL of a worker thread's source file, after checking that the file exists. Bundlers move the code that
 * starts the thread, but do not copy the file. Without this check, the thread would exit without a useful message.
 *
 * @param locate Returns the URL of the file, relative to `import.meta.url`. Our package build searches the source for
 * such `new URL` calls and rewrites them.
 * @param packageName Name of the package that contains the file.
 * @param exists Node's `existsSync`; an argument, because this package does not import Node.
 * @throws ThreadFileError with the path and a suggested fix.
 */
export const threadFile = (locate: () => URL, packageName: string, exists: (file: URL) => boolean): URL => {
  let file: URL;
  try {
    file = locate();
  } catch {
    throw new ThreadFileError(undefined, packageName);
  }
  if (file.protocol === "file:" && !exists(file))
    throw new ThreadFileError(decodeURIComponent(file.pathname), packageName);
  return file;
};

/**
 * Returns Node options for a worker thread: no options if `execArgv` contains `--input-type`; otherwise, the thread
 * inherits all options. `--input-type` states the language of a program from standard input or `--eval`, and Node
 * rejects the flag for a file.
 */
export const threadFlags = (execArgv: readonly string[]): { execArgv?: string[] } =>
  execArgv.some((flag) => flag.startsWith("--input-type")) ? { execArgv: [] } : {};
