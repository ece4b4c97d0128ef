export { AddonSources, builtFolders, cacheFolder } from "./addon-cache.ts";
export { othersWhoWrite, remarkOnCache } from "./private-path.ts";
export { compileAddon, type CompileOptions, CompilerError, runCompiler } from "./compile.ts";
