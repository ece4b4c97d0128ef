/** A named sample to assign to the training part or the held-out part, with its class. */
interface Named {
  readonly label: string | number;
  /** Pseudo-random number in [0, 1) that depends only on the name of the sample. */
  readonly hash: number;
}

/**
 * Returns the maximum difference between the number of held-out samples of a class and the expected number: one sample,
 * or the standard deviation of a random draw if larger. With a smaller limit, more samples would move between the
 * training part and the held-out part when samples are added.
 */
const toleranceOf = (share: number, fraction: number): number => Math.max(1, Math.sqrt(share * (1 - fraction)));

/**
 * Returns the number of samples of a class to hold out.
 *
 * @param count Number of samples in the class.
 * @param below Number of samples in the class whose hash is below `fraction`.
 */
const quotaOf = (count: number, below: number, fraction: number): number => {
  const share = count * fraction;
  const tolerance = toleranceOf(share, fraction);
  const least = share >= 1 ? Math.max(1, Math.ceil(share - tolerance)) : 0;
  return Math.min(Math.max(below, least), Math.floor(share + tolerance), count - 1);
};

/**
 * Holds out the samples of each class whose hash is below `fraction`. The number of held-out samples per class is
 * limited to a range around the class's proportional share: at least one sample if the share is at least one, and never
 * the complete class. When samples are added, a sample therefore stays held out, or stays in the training part, unless
 * its class would become disproportionate. In that case at most one sample of the class moves per added sample.
 *
 * @param fraction Fraction to hold out, in (0, 1).
 * @returns whether each sample is held out. At least one sample is held out if a class has two samples.
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
