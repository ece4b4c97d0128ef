import { SkeinError } from "./errors.ts";

/** A file that a thread is started from is not where its package looks for it: a bundler has left it behind. */
export class ThreadFileError extends SkeinError {
  override name = "ThreadFileError";

  /** The path that was looked at; undefined where a bundle does not know where it lies. */
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
 * The file that a thread of ours is started from. Bundlers move the code that starts it and leave the file where it
 * was: that is told before the thread is started, since it could only say that it has ended.
 *
 * @param locate gives the file's URL, relative to `import.meta.url`; the build of our packages finds such a `new URL`
 * in the text and rewrites it.
 * @param packageName whose file it is.
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
 * Options of Node for a thread of ours. A program that came through standard input or --eval says what language it is
 * in, which Node refuses to be told for a file.
 */
export const threadFlags = (execArgv: readonly string[]): { execArgv?: string[] } =>
  execArgv.some((flag) => flag.startsWith("--input-type")) ? { execArgv: [] } : {};
