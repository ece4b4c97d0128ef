import type { WebGpuDevice } from "./device.ts";
import type { Pass } from "./kernel.ts";
import { PipelineCache } from "./pipeline-cache.ts";
import { gridGroups, gridOf, shaderModule } from "./shader.ts";
import { StepTimer } from "./step-timer.ts";

/**
 * Maximum speeds of a device, measured with simple kernels. The values are upper bounds for the speeds of all other
 * kernels.
 */
export interface Roofline {
  /** Memory bandwidth of a copy of vec4<f32>: bytes read plus bytes written, per second. */
  readonly copyBytesPerSecond: number;
  /** Flops per second of independent f32 multiply-adds in registers. */
  readonly flopsPerSecond: number;
  /** Flops per second of multiply-adds on `vec4<f16>`. Absent if the device does not support f16. */
  readonly halfFlopsPerSecond?: number;
  /** Seconds per empty dispatch. */
  readonly dispatchSeconds: number;
}

const workgroupSize = 256;

const copyPass = (bytes: number): Pass => ({
  label: "roofline copy",
  bindings: [
    { name: "x", type: "array<vec4<f32>>", source: { input: 0 }, access: "read" },
    { name: "y", type: "array<vec4<f32>>", source: { output: 0 }, access: "write" },
  ],
  workgroupSize,
  groups: bytes / 16 / workgroupSize,
  code: `fn main(group: u32, lane: u32) { let i = group * ${workgroupSize}u + lane; y[i] = x[i]; }`,
});

/** Number of independent multiply-add chains, enough to hide the latency of a multiply-add. */
const chains = 8;

/**
 * Runs chains of multiply-adds that a compiler cannot fold, because the factor and the first value come from memory.
 */
const multiplyAddPass = (type: "f32" | "f16", groups: number, rounds: number): Pass => {
  const names = Array.from({ length: chains }, (_, i) => `v${i}`);
  return {
    label: `roofline ${type} multiply-add`,
    bindings: [
      { name: "x", type: "array<vec4<f32>>", source: { input: 0 }, access: "read" },
      { name: "y", type: "array<vec4<f32>>", source: { output: 0 }, access: "write" },
    ],
    workgroupSize,
    groups,
    ...(type === "f16" && { features: ["f16"] as const }),
    code: [
      "fn main(group: u32, lane: u32) {",
      `  let a = vec4<${type}>(x[lane & 3u]);`,
      ...names.map((name, i) => `  var ${name} = a * ${type}(${i + 1});`),
      `  for (var round = 0u; round < ${rounds}u; round++) {`,
      ...names.map((name) => `    ${name} = fma(${name}, a, a);`),
      "  }",
      `  y[group * ${workgroupSize}u + lane] = vec4<f32>(${names.join(" + ")});`,
      "}",
    ].join("\n"),
  };
};

interface Timed {
  readonly device: WebGpuDevice;
  readonly pipelines: PipelineCache;
  readonly x: GPUBuffer;
  readonly y: GPUBuffer;
}

/**
 * Measures the seconds of `repeats` dispatches of a pass, with timestamps, or with the host clock if the device has no
 * timestamps.
 */
const secondsOf = async ({ device, pipelines, x, y }: Timed, pass: Pass, repeats: number): Promise<number> => {
  const { gpu, facts } = device;
  const grid = gridOf(pass.groups);
  const variables = pass.bindings.map(({ name, type, access }) => ({ name, type, writable: access === "write" }));
  const code = shaderModule({
    pass,
    variables,
    renamed: new Map(),
    guarded: gridGroups(grid) !== pass.groups,
    sliced: false,
  });
  const { ready, layout } = pipelines.get(code, ["read", "write"], pass.label);
  const pipeline = await ready;
  const group = gpu.createBindGroup({
    layout,
    entries: [x, y].map((buffer, binding) => ({ binding, resource: { buffer } })),
  });
  const once = async (): Promise<number> => {
    const timer = facts.timestamps ? new StepTimer(device, () => performance.now() / 1000) : undefined;
    const encoder = gpu.createCommandEncoder();
    const timestampWrites = timer?.writes(0);
    const commands = encoder.beginComputePass(timestampWrites && { timestampWrites });
    commands.setPipeline(pipeline);
    commands.setBindGroup(0, group);
    for (let i = 0; i < repeats; i++) commands.dispatchWorkgroups(...grid);
    commands.end();
    timer?.resolve(encoder);
    timer?.submitting();
    const began = performance.now();
    gpu.queue.submit([encoder.finish()]);
    await device.settle(gpu.queue.onSubmittedWorkDone());
    const elapsed = (performance.now() - began) / 1000;
    const [range] = timer === undefined ? [] : await timer.read();
    // Some adapters have clocks that never advance.
    return range !== undefined && range.end > range.begin ? range.end - range.begin : elapsed;
  };
  await once();
  const samples = [];
  for (let i = 0; i < 5; i++) samples.push(await once());
  return Math.min(...samples);
};

/**
 * Measures the maximum speeds of a device. Takes a fraction of a second on a GPU, a few seconds on a software adapter.
 */
export const measureRoofline = async (device: WebGpuDevice): Promise<Roofline> => {
  const { gpu, facts } = device;
  const bytes = Math.min(facts.software ? 2 ** 25 : 2 ** 27, facts.maxBindingBytes, facts.maxBufferBytes);
  const [x, y] = [bytes, bytes].map((size) => gpu.createBuffer({ size, usage: 0x80 | 0x04 | 0x08 })) as [
    GPUBuffer,
    GPUBuffer,
  ]; // STORAGE | COPY_SRC | COPY_DST
  gpu.queue.writeBuffer(
    x,
    0,
    Float32Array.of(0.5, 0.25, 0.125, 0.75, 0.5, 0.25, 0.125, 0.75, 0.5, 0.25, 0.125, 0.75, 0.5, 0.25, 0.125, 0.75),
  );
  const timed: Timed = { device, pipelines: new PipelineCache(device), x, y };
  const [groups, rounds] = facts.software ? [256, 256] : [8192, 1024];
  try {
    const flops = (type: "f32" | "f16"): Promise<number> =>
      secondsOf(timed, multiplyAddPass(type, groups, rounds), 1).then(
        (seconds) => (2 * 4 * chains * rounds * groups * workgroupSize) / seconds,
      );
    const copies = facts.software ? 2 : 10;
    const empty: Pass = {
      ...copyPass(16 * workgroupSize),
      code: "fn main(group: u32, lane: u32) { if (group > 0u) { y[lane] = x[lane]; } }",
    };
    return {
      copyBytesPerSecond: (2 * bytes * copies) / (await secondsOf(timed, copyPass(bytes), copies)),
      flopsPerSecond: await flops("f32"),
      ...(facts.f16 && { halfFlopsPerSecond: await flops("f16") }),
      dispatchSeconds: (await secondsOf(timed, empty, 100)) / 100,
    };
  } finally {
    x.destroy();
    y.destroy();
  }
};
