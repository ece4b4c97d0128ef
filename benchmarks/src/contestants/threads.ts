/** Number of threads that this contestant's process computes with, from its environment. */
export const threads = (): number => Number(process.env["SKEIN_BENCH_THREADS"] ?? 1);
