import { InvariantError } from "@skein/tensor-core";
import type { WasmExports } from "../wasm-exports.ts";

/**
 * Calls a team function by its number. The call runs immediately, or is recorded and runs later in the thread that runs
 * the part.
 */
export type Call = (fn: number, ...args: number[]) => void;

/**
 * The threads of a rank, which run the parts of a kernel in parallel. Parts are independent: no part reads or writes
 * memory that another part writes. The results of a kernel are bitwise identical for any number of parts.
 */
export interface Team {
  /** Number of threads: the calling thread and its helpers. */
  readonly threads: number;
  /** Returns the number of a kernel export, or of `sgemm` if the team has a BLAS. */
  indexOf(name: string): number;
  /**
   * Returns the number of parts for a kernel that takes `nanoseconds` in one thread. Returns 1 if additional threads
   * would not make the kernel faster.
   *
   * @param most Maximum number of parts of the kernel.
   */
  partsOf(nanoseconds: number, most: number): number;
  /**
   * Runs a kernel. `write` records the calls of each part. The calls of a part run in order. Returns when all parts are
   * finished.
   *
   * @throws HelperError if a helper fails; thrown after all parts have stopped.
   */
  run(parts: number, write: (part: number, call: Call) => void): void;
}

/** Numbered functions of one thread of a team. All threads use the same memory. */
export class TeamFunctions {
  private readonly functions: readonly ((...args: number[]) => unknown)[];
  private readonly numbers: ReadonlyMap<string, number>;

  /**
   * Numbers the exported functions of a WebAssembly instance, followed by `sgemm`.
   *
   * @param sgemm Matrix product of the team's BLAS. Absent: the team has no BLAS.
   */
  constructor(wasm: WasmExports, sgemm?: (...args: number[]) => unknown) {
    // The same module exports the same names in every thread, so a number identifies the same function in every thread.
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

/** Creates a team of one thread. */
export const soloTeam = (functions: TeamFunctions): Team => ({
  threads: 1,
  indexOf: (name) => functions.indexOf(name),
  partsOf: () => 1,
  run: (parts, write) => {
    for (let part = 0; part < parts; part++) write(part, functions.call);
  },
});

/**
 * Returns the index of the first item of part `part`, if `count` items are split evenly into `parts` parts. A part ends
 * before the first item of the next part.
 */
export const partBegin = (count: number, part: number, parts: number): number => Math.floor((count * part) / parts);
