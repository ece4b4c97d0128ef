export { AddonSources, builtFolders, cacheFolder } from "./addon-cache.ts";
export { otherWriters, warnAboutCache } from "./private-path.ts";
export { compileAddon, type CompileOptions, CompilerError, runCompiler } from "./compile.ts";
