import { library } from "../../tooling/tsup.ts";

export default library({
  entry: ["src/files.ts", "src/index.ts", "src/node.ts", "src/transport.ts", "src/algorithms.ts"],
});
