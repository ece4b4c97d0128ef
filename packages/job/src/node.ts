export { buildShards, gatesAllPositions, numFusedShards } from "./build-shards.ts";
export { dataSchema } from "./data-schema.ts";
export { expertsOf, hasShards, hiddenOf } from "./experts-of.ts";
export { needsWholeMatrices } from "./faults/mesh-faults.ts";
export {
  checkJob,
  type LocatedJob,
  maxJobBytes,
  only,
  type Override,
  parseJob,
  parseLocated,
  parseOverride,
  parseSetting,
  type Path,
  relativePaths,
  startsWith,
  withAbsolutePaths,
} from "./file/check-job.ts";
export { decodingOf, hashedData, isDecoded } from "./image-decoding.ts";
export { sidesOf } from "./image-sides.ts";
export type { DataInput, JobInput, ModelInput } from "./job-input.ts";
export { jobJsonSchema, jobSchema } from "./job-schema.ts";
export type {
  BucketsJob,
  CompressionJob,
  CurvatureJob,
  DataJob,
  DecodedJob,
  DensityWarmup,
  ExpertsJob,
  FactorBucketsJob,
  Job,
  KfacJob,
  LearningRateJob,
  MemoryJob,
  MeshJob,
  ModelJob,
  ModuleJob,
  NormaliseJob,
  OptimizerJob,
  OverlapName,
  PlacementJob,
  PrecisionJob,
  PreprocessorJob,
  PretrainedJob,
  PrioritiesName,
  ProgramJob,
  ShardSchedule,
  TextJob,
} from "./job.ts";
export { supportsKeyValueCache } from "./key-value-cache.ts";
export {
  acrossHostsAxis,
  batchPartOf,
  dataAxis,
  everyRankAxis,
  expertAxis,
  expertLevelAxes,
  expertLevelsOf,
  expertReplicasAxis,
  expertShardsAxis,
  firstCoordinates,
  gridAxes,
  insideHostsAxis,
  meshGroups,
  meshOf,
  numBatchParts,
  placeOf,
  replicasAxisAlong,
  replicasAxisOf,
  samplesAtOnce,
  shardingOn,
  tensorAxis,
  worldAxis,
} from "./mesh.ts";
export { type ModuleKey, moduleKeys, modulesOf, withModules, withoutModulePaths } from "./module-keys.ts";
export { namedParameters, selectParameters, selectsParameter } from "./parameter-patterns.ts";
export { maxSide } from "./ranges.ts";
