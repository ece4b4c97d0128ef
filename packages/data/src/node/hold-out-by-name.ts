/** An item that may be held out. */
interface Named {
  readonly label: string | number;
  /** A pseudo-random number in [0, 1) that depends only on the item's name. */
  readonly hash: number;
}

/**
 * Returns the allowed difference between the held-out items of a class and their expected number: one item, or the
 * standard deviation of a random draw. A smaller bound would move more items between parts when items are added.
 */
const toleranceOf = (share: number, fraction: number): number => Math.max(1, Math.sqrt(share * (1 - fraction)));

/** Returns how many of `count` items of a class are held out if `below` items have a number below `fraction`. */
const quotaOf = (count: number, below: number, fraction: number): number => {
  const share = count * fraction;
  const tolerance = toleranceOf(share, fraction);
  const least = share >= 1 ? Math.max(1, Math.ceil(share - tolerance)) : 0;
  return Math.min(Math.max(below, least), Math.floor(share + tolerance), count - 1);
};

/**
 * Holds out items of each class by their names: the items whose number is below `fraction`, but close to the class's
 * proportional share, at least one item if the share is at least one, and never a whole class. An item therefore stays
 * in its part when items are added, unless its class would become disproportionate; then at most one item of that class
 * changes its part per added item.
 *
 * @param fraction in (0, 1).
 * @returns whether each item is held out; at least one item is, if a class has two.
 */
export const holdOutByName = (items: readonly Named[], fraction: number): boolean[] => {
  const classes = Map.groupBy(
    items.map((item, index) => ({ ...item, index })),
    ({ label }) => label,
  );
  const isHeldOut = items.map(() => false);
  const spare: { readonly hash: number; readonly index: number }[] = [];
  for (const ofClass of classes.values()) {
    ofClass.sort((a, b) => a.hash - b.hash);
    const below = ofClass.filter(({ hash }) => hash < fraction).length;
    const quota = quotaOf(ofClass.length, below, fraction);
    for (const { index } of ofClass.slice(0, quota)) isHeldOut[index] = true;
    if (ofClass.length > 1) spare.push(ofClass[0]!);
  }
  if (spare.length > 0 && !isHeldOut.includes(true))
    isHeldOut[spare.reduce((least, item) => (item.hash < least.hash ? item : least)).index] = true;
  return isHeldOut;
};
