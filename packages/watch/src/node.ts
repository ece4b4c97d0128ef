export { checkpointHistograms } from "./checkpoint-histograms.ts";
export { threadIsReady } from "./deadline-thread.ts";
export type { LoaderRequest, SearchAnswer } from "./loader-thread.ts";
export { readSamples } from "./read-samples.ts";
export { addRunsCommand } from "./runs-command.ts";
export { addWatchCommand, startWatch, watchBeside } from "./watch-command.ts";
export { serveWatch, type WatchServer } from "./watch-server.ts";
export { WatchedRuns } from "./watched-runs.ts";
