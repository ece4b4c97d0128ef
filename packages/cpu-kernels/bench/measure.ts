import { compileWasm, detectBuild, instantiateWasm } from "../src/wasm-build.ts";
import type { WasmExports } from "../src/kernel.ts";

/** One instance of the fastest build over a memory of its own, handing out addresses. */
export interface Bench {
  readonly wasm: WasmExports;
  /** Address of `count` fresh floats, filled with small numbers. */
  readonly floats: (count: number) => number;
  readonly view: (address: number, count: number) => Float32Array;
  /** Forget everything handed out. */
  readonly clear: () => void;
}

export const openBench = async (): Promise<Bench> => {
  const build = await detectBuild();
  const memory = new WebAssembly.Memory({ initial: 8192, maximum: 65536, shared: true });
  const wasm = instantiateWasm(await compileWasm(build), memory);
  const all = new Float32Array(memory.buffer);
  let next = 1024;
  process.stdout.write(`build: ${build}, one thread\n`);
  return {
    wasm,
    floats: (count) => {
      const at = next;
      next += Math.ceil(count / 16) * 16 + 16;
      for (let i = at; i < at + count; i++) all[i] = ((i * 7919) % 201) / 100 - 1;
      return 4 * at;
    },
    view: (address, count) => all.subarray(address / 4, address / 4 + count),
    clear: () => {
      next = 1024;
    },
  };
};

/** Milliseconds of one call: median and fastest of 21 samples, each of enough calls to last about 10 ms, after warming up. */
export const time = (call: () => void): { median: number; best: number } => {
  const sample = (calls: number): number => {
    const begin = performance.now();
    for (let i = 0; i < calls; i++) call();
    return (performance.now() - begin) / calls;
  };
  sample(2);
  const calls = Math.max(1, Math.round(10 / sample(2)));
  sample(calls); // V8 compiles hot functions in the background; let it finish
  const samples = Array.from({ length: 21 }, () => sample(calls)).sort((a, b) => a - b);
  return { median: samples[10]!, best: samples[0]! };
};

/** One line of a report. */
export const report = (name: string, flops: number, { median, best }: { median: number; best: number }): void => {
  process.stdout.write(`${name.padEnd(48)} ${(flops / median / 1e6).toFixed(1).padStart(6)} GFLOP/s  (best ${(flops / best / 1e6).toFixed(1)})  ${median.toFixed(3)} ms\n`);
};
