import { type Kernel, kernelOf } from "../kernel.ts";
import { rowsOf } from "../row-kernel.ts";
import { partBegin } from "../team/team.ts";

/** Estimated nanoseconds per rotated element, in one thread. */
const elementNanoseconds = 0.3;

/**
 * Rotates pairs of elements. Cosines and sines of all positions are computed once, in f64, when the graph is compiled:
 * 4 · positions · width bytes.
 */
export const rotaryKernel: Kernel = kernelOf({
  op: "rotary",
  constants: ({ inputs: [x], params }) => {
    const [positions, width] = x!.shape.slice(-2) as [number, number];
    const { base, offset, sign } = params;
    const half = width / 2;
    const table = new Float32Array(2 * positions * half);
    for (let position = 0; position < positions; position++) {
      for (let i = 0; i < half; i++) {
        const angle = (position + offset) * base ** ((-2 * i) / width);
        table[position * half + i] = Math.cos(angle);
        table[(positions + position) * half + i] = sign * Math.sin(angle);
      }
    }
    return new Uint8Array(table.buffer);
  },
  bind: ({ inputs: [x] }, _wasm, _memory, team) => {
    const rotary = team.indexOf("rotary");
    const { rows, width } = rowsOf(x!);
    const positions = x!.shape.at(-2)!;
    const half = width / 2;
    const sequences = rows / positions;
    const parts = team.partsOf(rows * width * elementNanoseconds, sequences);
    return (inputs, outputs, _scratch, constants) =>
      team.run(parts, (part, call) => {
        const first = partBegin(sequences, part, parts) * positions;
        const count = partBegin(sequences, part + 1, parts) * positions - first;
        const [to, from] = [outputs[0]! + 4 * first * width, inputs[0]! + 4 * first * width];
        call(rotary, to, from, constants, constants + 4 * positions * half, count, positions, half);
      });
  },
});
