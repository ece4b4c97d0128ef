/** Returns the number of compute threads of this implementation's process, from its environment. Default: 1. */
export const threads = (): number => Number(process.env["SKEIN_BENCH_THREADS"] ?? 1);
