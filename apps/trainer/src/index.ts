export {
  CheckpointError,
  ConfigError,
  DamagedCheckpointError,
  DiskFullError,
  ModuleError,
  NonFiniteError,
  RunError,
} from "@skein/cli/node";
export type { DataInput, JobInput, ModelInput } from "@skein/job/node";
export {
  defineCallbacks,
  defineCompression,
  defineData,
  type Defined,
  defineMetrics,
  defineModel,
  defineOptimizer,
  defineSchedule,
} from "./modules/define.ts";
export type {
  Callbacks,
  CallbacksFactory,
  CompressionContext,
  CompressionFactory,
  DataFactory,
  Judged,
  MetricsFactory,
  ModelFactory,
  OptimizerContext,
  OptimizerFactory,
  OwnMetrics,
  RunControl,
  ScheduleContext,
  ScheduleFactory,
} from "./modules/factories.ts";
export type { OwnOptimizer } from "@skein/step/node";
export type { StandardSchema } from "./modules/standard-schema.ts";
export { type DataSet, type OwnModel, type Prediction, type Task, taskOf } from "@skein/step/node";
export type {
  CheckpointEvent,
  EndEvent,
  EvaluationEvent,
  RunEvent,
  StartEvent,
  StepEvent,
} from "@skein/run-files/node";
export type { EvaluationFigures } from "@skein/run-files/node";
export type { StepProgress } from "@skein/run-files/node";
export type { Summary } from "@skein/run-files/node";
export {
  train,
  type TrainEvent,
  type TrainJob,
  type TrainOptions,
  type TrainResult,
  type TrainRun,
} from "./train.ts";
