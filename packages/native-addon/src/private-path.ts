import { realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** Returns a path and its parent folders, outermost last. */
const chainOf = (path: string): string[] => {
  const above = dirname(path);
  return above === path ? [path] : [path, ...chainOf(above)];
};

const real = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return path; // Does not exist yet.
  }
};

/**
 * Describes why other users can write to one file or folder. Returns undefined if only this user and root can.
 *
 * @param isLast whether `path` is the checked path itself instead of a parent folder.
 */
const faultOf = (path: string, ownUid: number, isLast: boolean): string | undefined => {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  const { uid, gid, mode } = stats;
  if (uid !== 0 && uid !== ownUid) return `${path} belongs to user ${uid}`;
  const isSticky = !isLast && (mode & 0o1000) !== 0; // In a sticky folder such as /tmp, other users cannot rename this user's files.
  const hasOwnGroup = gid === uid && uid !== 0; // By convention a group that contains only this user.
  const refused = hasOwnGroup ? 0o002 : 0o022;
  if (isSticky || (mode & refused) === 0) return undefined;
  return `${path} can be written by others (mode ${(mode & 0o7777).toString(8).padStart(4, "0")})`;
};

/**
 * Describes which other users can write to a file or folder. Returns undefined if only this user and root can. Parent
 * folders are also checked, because a user who can write to them can replace the path. Code is loaded only from paths
 * without other writers, as in ssh. Always returns undefined on Windows, which has no such file modes.
 */
export const otherWriters = (path: string): string | undefined => {
  const ownUid = process.geteuid?.();
  if (ownUid === undefined) return undefined;
  const asNamed = resolve(path);
  for (const each of new Set([asNamed, real(asNamed)]))
    for (const [index, part] of chainOf(each).entries()) {
      let fault: string | undefined;
      try {
        fault = faultOf(part, ownUid, index === 0);
      } catch (error) {
        fault = `${part} cannot be inspected (${(error as NodeJS.ErrnoException).code})`;
      }
      if (fault !== undefined) return fault;
    }
  return undefined;
};

/** Environment variable that records that this process or a parent process has already printed the warning. */
const remarkVariable = "SKEIN_CACHE_REMARK";

/**
 * Warns once, for this process and its child processes, that a cache is not used.
 *
 * @param say Called with the warning. Default: `process.emitWarning`.
 */
export const warnAboutCache = (
  what: string,
  fault: string,
  say: (line: string) => void = (line) => process.emitWarning(line),
): void => {
  if (process.env[remarkVariable] !== undefined) return;
  process.env[remarkVariable] = "1";
  say(`${what} is not used, since ${fault}; change owner and mode (chmod go-w), or name a folder of your own`);
};
