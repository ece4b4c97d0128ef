/** Which lanes of a stream a rank reads, and which samples it takes of what each gives to a batch. */
export interface LanePart {
  readonly lane: number;
  /** Of those that the lane gives to a batch. */
  readonly begin: number;
  readonly end: number;
  /** Where they lie in the rank's part of the batch. */
  readonly at: number;
}

/**
 * Lanes give contiguous parts of each batch, in their order, as ranks take such: where lanes and ranks do not share it
 * out alike, several ranks read one lane, each for its own part.
 *
 * @param width samples that each lane gives to a batch.
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
