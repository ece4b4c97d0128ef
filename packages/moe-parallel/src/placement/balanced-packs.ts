/**
 * Pack n items into m packs with n / m items each: heaviest first, each into the lightest pack with room. Of equal
 * items the first comes first, of equal packs the first is taken. Where packs hold one item each, item i stays in pack
 * i, since any order is as good and this one moves nothing.
 *
 * @param loads of the items; m divides n.
 * @param packLoads what packs weigh before. Default: nothing.
 * @returns the items of each pack, in the order in which they came.
 *
 * Source: `balanced_packing` of EPLB, https://github.com/deepseek-ai/EPLB.
 */
export const balancedPacks = (
  loads: readonly number[],
  numPacks: number,
  packLoads: readonly number[] = Array.from({ length: numPacks }, () => 0),
): readonly (readonly number[])[] => {
  const room = loads.length / numPacks;
  if (room === 1 && packLoads.every((load) => load === packLoads[0])) return loads.map((_, item) => [item]);
  const packs: number[][] = Array.from({ length: numPacks }, () => []);
  const weights = [...packLoads];
  for (const [item, load] of [...loads.entries()].sort(([a, x], [b, y]) => y - x || a - b)) {
    let lightest = -1;
    for (let pack = 0; pack < numPacks; pack++)
      if (packs[pack]!.length < room && (lightest === -1 || weights[pack]! < weights[lightest]!)) lightest = pack;
    packs[lightest]!.push(item);
    weights[lightest]! += load;
  }
  return packs;
};
