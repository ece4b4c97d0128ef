export { cacheFolder } from "./files/cache-folder.ts";
export { isRunning, statusOf } from "./processes/process-status.ts";
