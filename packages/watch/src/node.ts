export { checkpointHistograms } from "./checkpoint-histograms.ts";
export { readSamples } from "./read-samples.ts";
export { addRunsCommand } from "./runs-command.ts";
export { addWatchCommand, watchBeside } from "./watch-command.ts";
export { serveWatch } from "./watch-server.ts";
export { WatchedRuns } from "./watched-runs.ts";
