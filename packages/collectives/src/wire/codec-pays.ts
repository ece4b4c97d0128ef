/** Bandwidth of a link, and speed and compression ratio of a codec on this host. */
export interface CodecRates {
  /** Bandwidth of the link in bytes per second. */
  readonly bytesPerSecondOfLink: number;
  /** Encoding rate in uncoded bytes per second. */
  readonly encodeBytesPerSecond: number;
  /** Decoding rate in uncoded bytes per second. */
  readonly decodeBytesPerSecond: number;
  /** Compression ratio: uncoded bytes per coded byte. */
  readonly ratio: number;
}

/**
 * Whether compression shortens the time of a message:
 *
 *   t_comp + t_decomp + T(M/r) < T(M)
 *
 * With T(M) = α + M/B the size M and the start-up time α cancel: 1/E + 1/D + 1/(r·B) < 1/B, or B · (1/E + 1/D) < 1 −
 * 1/r, where B is the link's rate, E the encoding rate, D the decoding rate and r the compression ratio. If encoding,
 * sending and decoding of successive frames overlap, compression pays off up to a higher B. The function assumes no
 * overlap, because the threads that run the codec also compute sums.
 *
 * Source: ZipCCL, arXiv 2604.27844 (adaptive choice).
 */
export const codecPays = ({
  bytesPerSecondOfLink,
  encodeBytesPerSecond,
  decodeBytesPerSecond,
  ratio,
}: CodecRates): boolean => bytesPerSecondOfLink * (1 / encodeBytesPerSecond + 1 / decodeBytesPerSecond) < 1 - 1 / ratio;
