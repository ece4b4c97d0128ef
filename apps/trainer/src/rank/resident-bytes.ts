/** Resident memory of this process in bytes. Absent: the system did not report it, as without a free file handle. */
export const residentBytes = (): number | undefined => {
  try {
    return process.memoryUsage.rss();
  } catch {
    return undefined;
  }
};
