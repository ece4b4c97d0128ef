import { InvariantError } from "@skein/tensor-core";
import type { WasmExports } from "../wasm-exports.ts";

/** Call a function of the team's, now or in the thread that takes the part. */
export type Call = (fn: number, ...args: number[]) => void;

/**
 * The threads of a rank, which run a kernel's parts side by side. Parts are independent: none reads what another one
 * writes, and none writes where another one does. How a kernel cuts its work never changes a bit of its results.
 */
export interface Team {
  /** The caller's thread and its helpers. */
  readonly threads: number;
  /** Number of an export of the kernels, or of `sgemm` where the team has a BLAS. */
  indexOf(name: string): number;
  /**
   * Into how many parts to cut a kernel that takes one thread so many nanoseconds: one where the others would not pay.
   *
   * @param most parts that the kernel can be cut into.
   */
  partsOf(nanoseconds: number, most: number): number;
  /**
   * Have `write` call the functions of each part; returns when all parts are done. The calls of a part run in order.
   *
   * @throws HelperError when a helper fails, once nothing runs any more.
   */
  run(parts: number, write: (part: number, call: Call) => void): void;
}

/** Functions that each thread of a team has for itself, all of them on one memory. */
export class TeamFunctions {
  private readonly functions: readonly ((...args: number[]) => unknown)[];
  private readonly numbers: ReadonlyMap<string, number>;

  /** @param sgemm of a BLAS, if the team has one. */
  constructor(wasm: WasmExports, sgemm?: (...args: number[]) => unknown) {
    // The same module exports the same names everywhere, so a number means the same in every thread.
    const exported = Object.entries(wasm).filter(([, value]) => typeof value === "function");
    const entries = sgemm === undefined ? exported : [...exported, ["sgemm", sgemm] as const];
    this.functions = entries.map(([, value]) => value);
    this.numbers = new Map(entries.map(([name], i) => [name, i]));
  }

  indexOf(name: string): number {
    const index = this.numbers.get(name);
    if (index === undefined) throw new InvariantError(`a team of threads has no function ${name}`);
    return index;
  }

  readonly call: Call = (fn, ...args) => void this.functions[fn]!(...args);
}

/** A thread by itself. */
export const soloTeam = (functions: TeamFunctions): Team => ({
  threads: 1,
  indexOf: (name) => functions.indexOf(name),
  partsOf: () => 1,
  run: (parts, write) => {
    for (let part = 0; part < parts; part++) write(part, functions.call);
  },
});

/** First of the units of a part, where `count` units are shared evenly; that of the next part is its end. */
export const partBegin = (count: number, part: number, parts: number): number => Math.floor((count * part) / parts);
