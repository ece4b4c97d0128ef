/** An item that may be held out. */
interface Named {
  readonly label: string | number;
  /** A number in [0, 1) that its name alone decides. */
  readonly place: number;
}

/**
 * How far the held-out items of a class may be from its share: one item, or the standard deviation of a random draw. A
 * smaller bound would move more items from part to part when others come.
 */
const toleranceOf = (share: number, fraction: number): number => Math.max(1, Math.sqrt(share * (1 - fraction)));

/** Of `count` items of a class, those that are held out, if `below` of them have a place below `fraction`. */
const quotaOf = (count: number, below: number, fraction: number): number => {
  const share = count * fraction;
  const tolerance = toleranceOf(share, fraction);
  const least = share >= 1 ? Math.max(1, Math.ceil(share - tolerance)) : 0;
  return Math.min(Math.max(below, least), Math.floor(share + tolerance), count - 1);
};

/**
 * Hold out items of each class by their names: those whose place is below `fraction`, but about as many as the share of
 * the class, at least one if the share is one, and never a whole class. So an item stays in its part when others come,
 * unless its class would be out of proportion; then at most one item of that class changes its part for each that
 * comes.
 *
 * @param fraction in (0, 1).
 * @returns whether each item is held out; at least one is, if a class has two.
 */
export const holdOutByName = (items: readonly Named[], fraction: number): boolean[] => {
  const classes = Map.groupBy(
    items.map((item, index) => ({ ...item, index })),
    ({ label }) => label,
  );
  const isHeldOut = items.map(() => false);
  const spare: { readonly place: number; readonly index: number }[] = [];
  for (const ofClass of classes.values()) {
    ofClass.sort((a, b) => a.place - b.place);
    const below = ofClass.filter(({ place }) => place < fraction).length;
    const quota = quotaOf(ofClass.length, below, fraction);
    for (const { index } of ofClass.slice(0, quota)) isHeldOut[index] = true;
    if (ofClass.length > 1) spare.push(ofClass[0]!);
  }
  if (spare.length > 0 && !isHeldOut.includes(true))
    isHeldOut[spare.reduce((least, item) => (item.place < least.place ? item : least)).index] = true;
  return isHeldOut;
};
