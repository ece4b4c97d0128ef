/** What is known of a link and of a codec on this host. */
export interface CodecRates {
  /** Bytes per second that the link carries. */
  readonly bytesPerSecondOfLink: number;
  /** Uncoded bytes per second that the codec takes in. */
  readonly encodeBytesPerSecond: number;
  /** Uncoded bytes per second that it gives out. */
  readonly decodeBytesPerSecond: number;
  /** Uncoded bytes per coded byte. */
  readonly ratio: number;
}

/**
 * Whether coding shortens a message on its way:
 *
 *   t_comp + t_decomp + T(M/r) < T(M)
 *
 * With T(M) = α + M/B the size M and the start-up time α cancel: 1/E + 1/D + 1/(r·B) < 1/B, or B · (1/E + 1/D) < 1 −
 * 1/r, with B the link's rate, E and D the codec's. Where coding, sending and decoding of successive frames overlap it
 * would pay sooner; counted is the worse case, because the threads that code also sum.
 *
 * Source: ZipCCL, arXiv 2604.27844 (adaptive choice).
 */
export const codecPays = ({
  bytesPerSecondOfLink,
  encodeBytesPerSecond,
  decodeBytesPerSecond,
  ratio,
}: CodecRates): boolean => bytesPerSecondOfLink * (1 / encodeBytesPerSecond + 1 / decodeBytesPerSecond) < 1 - 1 / ratio;
