#!/usr/bin/env node
// `package.json` beside it is what the root depends on, for `pnpm exec skein-train`: turbo counts packages of the
// workspace that the root depends on among the inputs of every task, and each change to any of them would have
// WebAssembly built again.
import { launch } from "./launcher.js";

await launch("skein-train", import.meta.url);
