// Platform types for exported interfaces, resolved by the user's compiler settings. Without `lib: dom`, TypeScript does
// not define `WebAssembly`, and a reference to it in our declarations would be an error. With `lib: dom`, the types
// below are identical to the platform types.

/**
 * Type `WebAssembly.Memory` if the compiler settings define it; otherwise, an interface with the members that are used.
 */
export type WasmMemory = typeof globalThis extends { WebAssembly: { Memory: { prototype: infer Memory } } }
  ? Memory
  : { readonly buffer: ArrayBufferLike; grow(delta: number): number };

/** Type `WebAssembly.Module` if the compiler settings define it; otherwise, an opaque object type. */
export type WasmModule = typeof globalThis extends { WebAssembly: { Module: { prototype: infer Module } } }
  ? Module
  : object;

/**
 * Object type with the method `[Symbol.dispose]()`, which `using` calls, if the compiler settings define the symbol
 * (`lib: esnext.disposable`).
 */
export type Disposing = SymbolConstructor extends { readonly dispose: infer Key extends symbol }
  ? { readonly [key in Key]: () => void }
  : object;
