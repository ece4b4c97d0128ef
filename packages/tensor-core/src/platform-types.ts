// Platform types in exported interfaces, resolved by the user's compiler settings. Without `lib: dom`, TypeScript has
// no `WebAssembly`, and its name in our declarations would be an error. If the settings have it, these types are
// identical to the platform's.

/** `WebAssembly.Memory`. */
export type WasmMemory = typeof globalThis extends { WebAssembly: { Memory: { prototype: infer Memory } } }
  ? Memory
  : { readonly buffer: ArrayBufferLike; grow(delta: number): number };

/** `WebAssembly.Module`, which is opaque. */
export type WasmModule = typeof globalThis extends { WebAssembly: { Module: { prototype: infer Module } } }
  ? Module
  : object;

/**
 * Has `[Symbol.dispose]()`, which `using` calls, if the compiler settings know that symbol (`lib: esnext.disposable`).
 */
export type Disposing = SymbolConstructor extends { readonly dispose: infer Key extends symbol }
  ? { readonly [key in Key]: () => void }
  : object;
