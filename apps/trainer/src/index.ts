export {
  CheckpointError,
  ConfigError,
  DamagedCheckpointError,
  DiskFullError,
  ModuleError,
  NonFiniteError,
  RunError,
} from "./errors.ts";
export type { DataInput, JobInput, ModelInput } from "./job-input.ts";
export { defineData, defineModel, type Defined } from "./modules/define.ts";
export type { DataFactory, ModelFactory } from "./modules/factories.ts";
export type { StandardSchema } from "./modules/standard-schema.ts";
export type { DataSet, Prediction, Task } from "./modules/task.ts";
export type { Standing } from "./progress.ts";
export type { Summary } from "./summary.ts";
export { train, type TrainJob, type TrainOptions, type TrainResult } from "./train.ts";
