import { library } from "../../tooling/tsup.ts";

export default library({
  entry: { index: "src/index.ts", main: "src/main.ts", profiling: "src/profiling.ts" },
  platform: "node",
  dts: { entry: { index: "src/index.ts", profiling: "src/profiling.ts" } },
});
