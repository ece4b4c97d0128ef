/** Exports of one WebAssembly build: plain functions of numbers, addresses in bytes. */
export type WasmExports = { readonly [name: string]: (...args: number[]) => number };
