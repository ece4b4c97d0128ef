/** Exports of a WebAssembly build: functions whose arguments and results are numbers. Addresses are in bytes. */
export type WasmExports = { readonly [name: string]: (...args: number[]) => number };
