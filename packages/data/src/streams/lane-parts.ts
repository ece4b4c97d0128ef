/** Samples of a lane that one rank uses in each batch. */
export interface LanePart {
  readonly lane: number;
  /** Range of samples, `begin` to `end` (exclusive), among the samples that the lane provides for a batch. */
  readonly begin: number;
  readonly end: number;
  /** Index of the range's first sample in the rank's share of the batch. */
  readonly at: number;
}

/**
 * Returns the lanes that a rank reads. Lanes provide contiguous parts of each batch, in order, and ranks use contiguous
 * parts. If the boundaries of lanes and ranks differ, several ranks read the same lane and use different parts of it.
 *
 * @param width Number of samples that each lane provides for a batch.
 */
export const lanePartsOf = (
  range: { readonly begin: number; readonly end: number },
  width: number,
  numLanes: number,
): LanePart[] =>
  Array.from({ length: numLanes }, (_, lane) => {
    const [begin, end] = [Math.max(range.begin, lane * width), Math.min(range.end, (lane + 1) * width)];
    return { lane, begin: begin - lane * width, end: end - lane * width, at: begin - range.begin };
  }).filter(({ begin, end }) => begin < end);
