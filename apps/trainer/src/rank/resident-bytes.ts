/**
 * Resident memory of this process in bytes. Undefined: the system did not report it, as when no file handle is free.
 */
export const residentBytes = (): number | undefined => {
  try {
    return process.memoryUsage.rss();
  } catch {
    return undefined;
  }
};
