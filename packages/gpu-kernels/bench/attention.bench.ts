// Measures attention compared with the roofline, for shapes of GPT-2.
// Run: node bench/attention.bench.ts [rows whose name contains this]
import { attention, type Tensor } from "@skein/tensor-core";
import { emit, operators } from "@skein/tensor-core/backend";
import { normalArray, uniformArray } from "@skein/testing";
import { benchKernels, type KernelRow } from "./kernel-bench.ts";

const rows = (heads: number, positions: number, width: number, causal: boolean): KernelRow[] => {
  const params = { causal, scale: 1 / Math.sqrt(width) };
  const shape = [1, heads, positions, width];
  const spec = { dtype: "f32", shape } as const;
  const sums = { dtype: "f32", shape: shape.slice(0, 3) } as const;
  const forward = operators["attention"]!.cost([spec, spec, spec], [spec, sums], params);
  const backward = operators["attention-backward"]!.cost(
    [spec, spec, spec, spec, sums, spec],
    [spec, spec, spec],
    params,
  );
  const name = `${heads} heads, ${positions} × ${width}${causal ? ", causal" : ""}`;
  const operands = [1, 2, 3].map((seed) => (): ReturnType<typeof normalArray> => normalArray(shape, seed));
  return [
    {
      name: `forward, ${name}`,
      fn: (q: Tensor, k: Tensor, v: Tensor) => attention(q, k, v, params),
      inputs: () => operands.map((make) => make()),
      flops: forward.flops,
      bytes: forward.bytesRead + forward.bytesWritten,
    },
    {
      name: `backward, ${name}`,
      fn: (...x: Tensor[]) => emit("attention-backward", x, params),
      // Logsumexp values as large as those of unit normal scores, so that weights stay below 1.
      inputs: () => [
        ...operands.map((make) => make()),
        normalArray(shape, 4),
        uniformArray(shape.slice(0, 3), 8, 9),
        normalArray(shape, 5),
      ],
      flops: backward.flops,
      bytes: backward.bytesRead + backward.bytesWritten,
    },
  ];
};

await benchKernels("attention", [
  ...rows(12, 256, 64, true),
  ...rows(12, 1024, 64, true),
  ...rows(12, 1024, 64, false),
  ...rows(16, 1024, 80, true),
  ...rows(8, 1024, 128, true),
]);
