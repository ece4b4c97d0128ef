import type { Lanes, Source } from "./fold.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * Number of registers that one iteration of a loop loads before it combines them: enough to hide the memory latency.
 */
export const unroll = 8;

/**
 * Returns WGSL of `fn lift_turn(at: u32, step: u32, place: u32, place_step: u32, column: u32) -> State`, which loads
 * `unroll` registers and returns their combined state. The index of the first register is `at`, and its position along
 * the folded dimension is `place`. From one register to the next, the index increases by `step`, and the position by
 * `place_step`. The registers are combined as a tree, so that the rounding error grows with the logarithm of their
 * number.
 */
export const unrolledText = (source: Source, lanes: Lanes): string => {
  if (source.unrolled !== undefined) return source.unrolled(lanes);
  const lifts = Array.from(
    { length: unroll },
    (_, i) => `let s${i} = lift(at + ${i}u * step, place + ${i}u * place_step, column);`,
  );
  let names = lifts.map((_, i) => `s${i}`);
  while (names.length > 1)
    names = Array.from({ length: names.length / 2 }, (_, i) => `join_State(${names[2 * i]}, ${names[2 * i + 1]})`);
  return wgsl`
    fn lift_turn(at: u32, step: u32, place: u32, place_step: u32, column: u32) -> State {
      ${lifts}
      return ${names[0]!};
    }
  `;
};
