/**
 * Do something with each item, so many at a time. After a failure no other is begun; of several the first in the list
 * is thrown, however long each took.
 */
export const eachOf = async (count: number, atOnce: number, work: (index: number) => Promise<void>): Promise<void> => {
  const failures = new Map<number, unknown>();
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count && failures.size === 0) {
      const index = next++;
      await work(index).catch((error: unknown) => failures.set(index, error));
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker));
  if (failures.size > 0) throw failures.get(Math.min(...failures.keys()));
};
