/**
 * Packs n items into m packs of n / m items: heaviest item first, each item into the lightest pack with free room.
 * Among equal items, the first item is packed first. Among equal packs, the first pack is used. If every pack has room
 * for one item, item i is put into pack i, because any order is equally good, and this order moves nothing.
 *
 * @param loads load of each item; m divides n.
 * @param packLoads initial load of each pack. Default: 0.
 * @returns the items of each pack, in the order of packing.
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
