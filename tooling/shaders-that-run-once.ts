/**
 * Environment variables that minimize the shader compile time of Mesa's software driver, because tests and examples run
 * each shader only once or twice on little data. Without optimization, the compile time is a quarter. With 128-bit
 * vectors, the compile time is 60 % of the time with 256-bit vectors.
 */
export const shadersThatRunOnce: Readonly<Record<string, string>> = {
  GALLIVM_PERF: process.env["GALLIVM_PERF"] ?? "nopt",
  LP_NATIVE_VECTOR_WIDTH: process.env["LP_NATIVE_VECTOR_WIDTH"] ?? "128",
};
