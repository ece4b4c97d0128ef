export type { MpiAddon, MpiFamily } from "./addon.ts";
export { buildMpiAddon, type BuildMpiAddonOptions, type BuiltAddon } from "./build-addon.ts";
export { type ConnectMpiOptions, connectMpi, type MpiConnection } from "./connect.ts";
export { MpiError, MpiTransferError, NativeTimeoutError } from "./errors.ts";
export { joinMpiWorld, type MpiWorldConnection } from "./join.ts";
export { findAddon, loadMpi, type LoadMpiOptions } from "./load-addon.ts";
export { createMpiWorld, type MpiProcessWorld, type MpiWorldOptions } from "./mpi-world.ts";
export { type MpiWorld, openMpi, type OpenMpiOptions } from "./world.ts";
