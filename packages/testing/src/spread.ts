/**
 * Returns f32 values of both signs whose magnitudes are spread evenly over the bit patterns between two positive
 * bounds, so that every exponent is covered.
 */
export const spread = (low: number, high: number, count: number = 20_000): Float32Array<ArrayBuffer> => {
  const bits = new Uint32Array(Float32Array.of(low, high).buffer);
  const grid = Uint32Array.from(
    { length: count },
    (_, i) => bits[0]! + Math.floor(((bits[1]! - bits[0]!) * i) / (count - 1)),
  );
  const positive = new Float32Array(grid.buffer);
  return Float32Array.of(...positive, ...positive.map((value) => -value));
};
