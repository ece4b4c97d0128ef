/** Write `value` (its 32 bits) into `count` words. */
export function fill32(output: usize, value: u32, count: i32): void {
  for (let i = 0; i < count; i++) store<u32>(output + ((<usize>i) << 2), value);
}
