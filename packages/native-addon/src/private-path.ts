import { realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** A path and the folders above it, outermost last. */
const chainOf = (path: string): string[] => {
  const above = dirname(path);
  return above === path ? [path] : [path, ...chainOf(above)];
};

const real = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return path; // not there yet
  }
};

/** What is wrong with one file or folder. @param isLast whether it is what is asked about, not a folder above. */
const faultOf = (path: string, ownUid: number, isLast: boolean): string | undefined => {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  const { uid, gid, mode } = stats;
  if (uid !== 0 && uid !== ownUid) return `${path} belongs to user ${uid}`;
  const isSticky = !isLast && (mode & 0o1000) !== 0; // as /tmp: others cannot rename what is ours there
  const hasOwnGroup = gid === uid && uid !== 0; // by convention a group of this user alone
  const refused = hasOwnGroup ? 0o002 : 0o022;
  if (isSticky || (mode & refused) === 0) return undefined;
  return `${path} can be written by others (mode ${(mode & 0o7777).toString(8).padStart(4, "0")})`;
};

/**
 * Who else may put something into a file or folder, in words; undefined if only this user and root can. Folders above
 * count: whoever can write there can put another in its place. Code is loaded from no other place; ssh asks the same.
 * On Windows, which has no such modes, always undefined.
 */
export const othersWhoWrite = (path: string): string | undefined => {
  const ownUid = process.geteuid?.();
  if (ownUid === undefined) return undefined;
  const asNamed = resolve(path);
  for (const each of new Set([asNamed, real(asNamed)]))
    for (const [index, part] of chainOf(each).entries()) {
      let fault: string | undefined;
      try {
        fault = faultOf(part, ownUid, index === 0);
      } catch (error) {
        fault = `${part} cannot be looked at (${(error as NodeJS.ErrnoException).code})`;
      }
      if (fault !== undefined) return fault;
    }
  return undefined;
};

/** Environment variable by which the remark is made once, by this process or one that has started it. */
const remarkVariable = "SKEIN_CACHE_REMARK";

/** Say once that a cache is not used. @param say Default: a warning of the process. */
export const remarkOnCache = (
  what: string,
  fault: string,
  say: (line: string) => void = (line) => process.emitWarning(line),
): void => {
  if (process.env[remarkVariable] !== undefined) return;
  process.env[remarkVariable] = "1";
  say(`${what} is not used, since ${fault}; change owner and mode (chmod go-w), or name a folder of your own`);
};
