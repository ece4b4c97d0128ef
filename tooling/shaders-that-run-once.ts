/**
 * Environment for Mesa's software driver. Tests and examples run each shader once or twice on little data, so the
 * compile time dominates. Without optimization, the compile time is a quarter; with vectors of 128 bits, it is 0.6 of
 * the time with 256 bits.
 */
export const shadersThatRunOnce: Readonly<Record<string, string>> = {
  GALLIVM_PERF: process.env["GALLIVM_PERF"] ?? "nopt",
  LP_NATIVE_VECTOR_WIDTH: process.env["LP_NATIVE_VECTOR_WIDTH"] ?? "128",
};
