// Split of work between threads: each thread computes part `part` of `parts`.

/**
 * Returns the index of the first item of a part, if `count` items are split evenly into `parts` parts. A part ends
 * before the first item of the next part.
 */
// @ts-ignore: decorator
@inline
export function partBegin(count: i32, part: i32, parts: i32): i32 {
  return <i32>((<i64>count * part) / parts);
}
