import { type Kernel, kernelOf } from "../kernel.ts";
import { rowsOf } from "../row-kernel.ts";

/**
 * Cosines and sines of all positions are computed once, in f64, when the graph is compiled: 4 · positions · width
 * bytes.
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
  bind: ({ inputs: [x] }, wasm) => {
    const rotary = wasm["rotary"]!;
    const { rows, width } = rowsOf(x!);
    const positions = x!.shape.at(-2)!;
    const half = width / 2;
    return (inputs, outputs, _, constants) =>
      void rotary(outputs[0]!, inputs[0]!, constants, constants + 4 * positions * half, rows, positions, half);
  },
});
