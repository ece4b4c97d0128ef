export type { MpiAddon, MpiFamily } from "./addon.ts";
export { defaultCacheFolder } from "./addon-cache.ts";
export { buildMpiAddon, type BuildOptions, type BuiltAddon } from "./build-addon.ts";
export { type ConnectOptions, connectMpi, type MpiConnection } from "./connect.ts";
export { MpiError, MpiTransferError, NativeTimeoutError } from "./errors.ts";
export { findLauncher, type Launcher } from "./launcher.ts";
export { loadMpi, type LoadOptions } from "./load-addon.ts";
export { createMpiWorld, type MpiProcessWorld, type MpiWorldOptions } from "./mpi-world.ts";
export { type MpiWorld, openMpi, type OpenOptions } from "./world.ts";
