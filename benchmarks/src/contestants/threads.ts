/** With how many threads a contestant's process computes, as it was started. */
export const threads = (): number => Number(process.env["SKEIN_BENCH_THREADS"] ?? 1);
