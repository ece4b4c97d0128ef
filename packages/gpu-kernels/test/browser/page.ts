// The rows run in a worker, as training does; the test finds it among the page's workers. Held, so that it is not
// collected.
Object.assign(globalThis, {
  worker: new Worker(new URL("./conformance-worker.ts", import.meta.url), { type: "module" }),
});
