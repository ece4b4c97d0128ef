import { library } from "../../tooling/tsup.ts";

export default library({ entry: ["src/index.ts", "src/placement.ts", "src/routing.ts"] });
