import { SkeinError } from "./errors.ts";

/** The file of a worker thread is not where its package looks for it, because a bundler did not copy it. */
export class ThreadFileError extends SkeinError {
  override name = "ThreadFileError";

  /** Path that was checked; undefined if a bundle does not know its own location. */
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
 * Locate the file of a worker thread. Bundlers move the code that starts the thread and leave the file behind. This
 * check reports the missing file before the thread is started, because the thread itself could only exit.
 *
 * @param locate returns the file's URL, relative to `import.meta.url`; the build of our packages finds such a `new URL`
 * in the source and rewrites it.
 * @param packageName package that owns the file.
 * @param exists `existsSync` of Node, which this package does not import.
 * @throws ThreadFileError with the path and the cure.
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
 * Node options for a worker thread. If the program came from standard input or --eval, its flag states the language of
 * the source, which Node rejects for a file.
 */
export const threadFlags = (execArgv: readonly string[]): { execArgv?: string[] } =>
  execArgv.some((flag) => flag.startsWith("--input-type")) ? { execArgv: [] } : {};
