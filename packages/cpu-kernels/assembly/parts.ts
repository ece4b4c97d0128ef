// Work that several threads share: a kernel's part `part` of `parts`.

/** First of the units of a part, where `count` units are shared evenly; that of the next part is its end. */
// @ts-ignore: decorator
@inline
export function partBegin(count: i32, part: i32, parts: i32): i32 {
  return <i32>((<i64>count * part) / parts);
}
