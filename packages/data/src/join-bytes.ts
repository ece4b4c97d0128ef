/** Concatenates byte arrays. A single array is returned without a copy. */
export const joinBytes = (...pieces: readonly Uint8Array[]): Uint8Array => {
  if (pieces.length === 1) return pieces[0]!;
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
};
