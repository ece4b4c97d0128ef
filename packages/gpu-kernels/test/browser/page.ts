// The rows run in a worker, like training. The test finds the worker among the page's workers. Stored globally, so that
// the worker is not garbage-collected.
Object.assign(globalThis, {
  worker: new Worker(new URL("./conformance-worker.ts", import.meta.url), { type: "module" }),
});
