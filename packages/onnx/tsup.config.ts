import { library } from "../../tooling/tsup.ts";

export default library({ entry: ["src/index.ts"] });
