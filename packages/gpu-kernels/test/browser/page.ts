// The rows run in a worker, as training does. The test finds the worker in the list of the page's workers. The worker
// is stored globally, so that it is not garbage-collected.
Object.assign(globalThis, {
  worker: new Worker(new URL("./conformance-worker.ts", import.meta.url), { type: "module" }),
});
