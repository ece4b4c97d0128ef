/**
 * Returns the resident memory of this process in bytes; undefined if the system call fails, as when no file handle is
 * free.
 */
export const residentBytes = (): number | undefined => {
  try {
    return process.memoryUsage.rss();
  } catch {
    return undefined;
  }
};
