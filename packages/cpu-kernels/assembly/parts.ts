// Split of work between threads: each thread computes part `part` of `parts`.

/**
 * Returns the first unit of a part if `parts` parts share `count` units evenly. A part ends before the first unit of
 * the next part.
 */
// @ts-ignore: decorator
@inline
export function partBegin(count: i32, part: i32, parts: i32): i32 {
  return <i32>((<i64>count * part) / parts);
}
