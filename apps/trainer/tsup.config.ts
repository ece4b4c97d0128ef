import { library } from "../../tooling/tsup.ts";

export default library({ entry: { main: "src/main.ts" }, platform: "node", dts: false });
