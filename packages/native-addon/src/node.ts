export { AddonSources, builtFolders, cacheFolder } from "./addon-cache.ts";
export { compileAddon, type CompileOptions, CompilerError, runCompiler } from "./compile.ts";
