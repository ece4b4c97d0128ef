import { library } from "../../tooling/tsup.ts";

export default library({ entry: ["src/node.ts"] });
