/**
 * Rotates the pairs (i, i + half) of each row by an angle. `cosines` and `sines` [positions, half] hold the cosine and
 * sine of each angle. Row r has position r mod positions.
 */
export function rotary(output: usize, input: usize, cosines: usize, sines: usize, rows: i32, positions: i32, half: i32): void {
  const bytes = (<usize>half) << 2;
  let position = 0;
  for (let row = 0; row < rows; row++) {
    const cosine = cosines + <usize>position * bytes;
    const sine = sines + <usize>position * bytes;
    let i: usize = 0;
    if (ASC_FEATURE_SIMD) {
      for (; i + 16 <= bytes; i += 16) {
        const a = v128.load(input + i);
        const b = v128.load(input + bytes + i);
        const c = v128.load(cosine + i);
        const s = v128.load(sine + i);
        v128.store(output + i, f32x4.sub(f32x4.mul(a, c), f32x4.mul(b, s)));
        v128.store(output + bytes + i, f32x4.add(f32x4.mul(b, c), f32x4.mul(a, s)));
      }
    }
    for (; i < bytes; i += 4) {
      const a = load<f32>(input + i);
      const b = load<f32>(input + bytes + i);
      const c = load<f32>(cosine + i);
      const s = load<f32>(sine + i);
      store<f32>(output + i, a * c - b * s);
      store<f32>(output + bytes + i, b * c + a * s);
    }
    input += 2 * bytes;
    output += 2 * bytes;
    position = position + 1 == positions ? 0 : position + 1;
  }
}
