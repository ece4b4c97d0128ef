/**
 * Environment for Mesa's software driver. Tests and examples run each shader once or twice on little data, so what
 * counts is the time to compile it. Without optimisation that is a quarter; for vectors of 128 bits it is 0.6 of that
 * for those of 256.
 */
export const shadersThatRunOnce: Readonly<Record<string, string>> = {
  GALLIVM_PERF: process.env["GALLIVM_PERF"] ?? "nopt",
  LP_NATIVE_VECTOR_WIDTH: process.env["LP_NATIVE_VECTOR_WIDTH"] ?? "128",
};
