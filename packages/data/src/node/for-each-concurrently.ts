/**
 * Processes the items 0 to `count` − 1, at most `concurrency` at the same time. After an error no further item is
 * started. If several items fail, throws the error of the item with the lowest index, regardless of timing.
 */
export const forEachConcurrently = async (
  count: number,
  concurrency: number,
  work: (index: number) => Promise<void>,
): Promise<void> => {
  const failures = new Map<number, unknown>();
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count && failures.size === 0) {
      const index = next++;
      await work(index).catch((error: unknown) => failures.set(index, error));
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, count) }, worker));
  if (failures.size > 0) throw failures.get(Math.min(...failures.keys()));
};
