import { library } from "../../tooling/tsup.ts";

// The rank's thread is a file of its own beside main.js, where `launch.ts` looks for it.
export default library({ entry: { main: "src/main.ts", rank: "src/rank.ts" }, platform: "node", dts: false });
