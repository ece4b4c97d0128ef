import { ArgumentError, bytesPerElement, type DType, type Reduction } from "@skein/tensor-core";
import type { WasmMemory, WasmModule } from "@skein/tensor-core/backend";
import { type Arithmetic, reducible } from "./arithmetic.ts";
import { wasmMessageMemory } from "./message-memory.ts";

type Accumulate = (target: number, a: number, b: number, count: number) => void;
type Exchange = (a: number, b: number, count: number) => void;

interface Exports {
  readonly copyRegion: (target: number, source: number, bytes: number) => void;
  readonly [name: string]: Accumulate | Exchange;
}

const reductions: readonly Reduction[] = ["sum", "max", "min"];
const exportName = (verb: "accumulate" | "exchange", reduction: Reduction, dtype: DType): string =>
  `${verb}${reduction[0]!.toUpperCase()}${reduction.slice(1)}${dtype.toUpperCase()}`;

/**
 * Functions that a kernel module must export: `accumulate<Sum|Max|Min><DTYPE>(target, a, b, count)` and
 * `copyRegion(target, source, bytes)`. Optional: `exchange<…>(a, b, count)`, which writes the result to both operands.
 */
export const requiredExports: readonly string[] = [
  "copyRegion",
  ...reductions.flatMap((reduction) => [...reducible].map((dtype) => exportName("accumulate", reduction, dtype))),
];

/** Checks that a kernel module exports all required functions. */
export const checkKernels = (module: WasmModule): void => {
  const present = new Set(WebAssembly.Module.exports(module).map((entry) => entry.name));
  const missing = requiredExports.filter((name) => !present.has(name));
  if (missing.length > 0)
    throw new ArgumentError(
      `the kernel module lacks ${missing.join(", ")}, which reductions need; pass the module of @skein/cpu-kernels, or set kernels: "none" for plain loops`,
    );
};

// Block size of reductions in bytes. The partial sums of a block stay in the L1 cache while the blocks of further ranks
// are added. 16 KiB is a third of the smallest L1 data cache in use (48 KiB), so that target and operand both fit.
const blockBytes = 16_384;

/** Returns reductions on a shared WebAssembly memory, which must contain all arrays. */
export const wasmArithmetic = (module: WasmModule, memory: WasmMemory): Arithmetic => {
  const exports = new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as Exports;

  const entry = (verb: "accumulate" | "exchange", reduction: Reduction): ReadonlyMap<DType, Accumulate | Exchange> =>
    new Map(
      [...reducible].flatMap((dtype) => {
        const found = exports[exportName(verb, reduction, dtype)];
        return found === undefined ? [] : [[dtype, found] as const];
      }),
    );
  const table = (verb: "accumulate" | "exchange"): ReadonlyMap<Reduction, ReadonlyMap<DType, Accumulate | Exchange>> =>
    new Map(reductions.map((reduction) => [reduction, entry(verb, reduction)]));
  // Look up the functions in advance: building a name takes as long as adding a few KiB.
  const [accumulates, exchanges] = [table("accumulate"), table("exchange")];

  const messages = wasmMessageMemory(memory);
  let block: number | undefined;
  /**
   * Returns the address of a block for partial sums, used if no target can store the partial sums because every target
   * is also a later operand. Example: a rank reduces received messages into its own operand.
   */
  const spare = (): number => (block ??= messages.take(blockBytes).byteOffset);

  const combineBlock = (
    accumulate: Accumulate,
    width: number,
    targets: readonly number[],
    sources: readonly number[],
    bytes: number,
  ): void => {
    const count = bytes / width;
    // Accumulate in a target that is not a later operand.
    const home = targets.find((target) => sources.indexOf(target, 2) < 0) ?? spare();
    accumulate(home, sources[0]!, sources[1]!, count);
    for (const source of sources.slice(2)) accumulate(home, home, source, count);
    for (const target of targets) if (target !== home) exports.copyRegion(target, home, bytes);
  };

  return {
    combine: (dtype, reduction, targets, sources) => {
      const bytes = sources[0]!.byteLength;
      const width = bytesPerElement[dtype];
      const exchange = exchanges.get(reduction)!.get(dtype) as Exchange | undefined;
      if (exchange !== undefined && sources.length === 2 && targets.length === 2)
        return exchange(sources[0]!.byteOffset, sources[1]!.byteOffset, bytes / width);
      const accumulate = accumulates.get(reduction)!.get(dtype) as Accumulate;
      if (sources.length === 2 && targets.length === 1)
        return accumulate(targets[0]!.byteOffset, sources[0]!.byteOffset, sources[1]!.byteOffset, bytes / width);
      const to = targets.map((target) => target.byteOffset);
      const from = sources.map((source) => source.byteOffset);
      for (let offset = 0; offset < bytes; offset += blockBytes) {
        combineBlock(
          accumulate,
          width,
          to.map((address) => address + offset),
          from.map((address) => address + offset),
          Math.min(blockBytes, bytes - offset),
        );
      }
    },
    copy: (target, source) => exports.copyRegion(target.byteOffset, source.byteOffset, source.byteLength),
  };
};
