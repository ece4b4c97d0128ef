import { library } from "../../tooling/tsup.ts";

export default library({
  entry: [
    "src/index.ts",
    "src/files.ts",
    "src/large-models.ts",
    "src/calibration.ts",
    "src/planners.ts",
    "src/hardware.ts",
    "src/pricing.ts",
    "src/simulation.ts",
  ],
});
