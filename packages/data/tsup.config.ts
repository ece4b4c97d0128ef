import { library } from "../../tooling/tsup.ts";

// The worker stands beside node.js in dist, where `prefetch.ts` looks for it by its own extension.
export default library({ entry: { index: "src/index.ts", node: "src/node.ts", "prefetch-worker": "src/node/prefetch-worker.ts" } });
