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
export {
  defineCompression,
  defineData,
  type Defined,
  defineMetrics,
  defineModel,
  defineOptimizer,
  defineSchedule,
} from "./modules/define.ts";
export type {
  CompressionContext,
  CompressionFactory,
  DataFactory,
  Judged,
  MetricsFactory,
  ModelFactory,
  OptimizerContext,
  OptimizerFactory,
  OwnMetrics,
  ScheduleContext,
  ScheduleFactory,
} from "./modules/factories.ts";
export type { StandardSchema } from "./modules/standard-schema.ts";
export type { DataSet, Prediction, Task } from "./modules/task.ts";
export type { Standing } from "./progress.ts";
export type { Summary } from "./summary.ts";
export { train, type TrainJob, type TrainOptions, type TrainResult } from "./train.ts";
