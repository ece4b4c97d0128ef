import type { z } from "zod";
import type { jobSchema } from "./job-schema.ts";

/** `T` with readonly properties, also in nested objects and arrays. */
export type Immutable<T> = T extends object ? { readonly [Key in keyof T]: Immutable<T[Key]> } : T;

/**
 * A checked job: all defaults are filled in, and all rules are satisfied. `job-schema.ts` and the schemas of its parts
 * describe each key.
 */
export type Job = Immutable<z.infer<typeof jobSchema>>;

export type MeshJob = Job["mesh"];
export type MemoryJob = Job["memory"];
export type PrecisionJob = Job["precision"];
export type LearningRateJob = Job["learningRate"];
export type CompressionJob = Job["compression"];
export type BucketsJob = Job["buckets"];
export type OverlapName = Job["overlap"];
export type PrioritiesName = Job["priorities"];
export type OptimizerJob = Job["optimizer"];
export type DataJob = Job["data"];
export type ModelJob = Job["model"];

type UserObject = NonNullable<Job["callbacks"]>;

/** Reference to a function that a user module exports. */
export type ModuleJob = Extract<UserObject, { kind: "module" }>;

/** Reference to a user object that a program passed to `train()`. The digest of callbacks is zeros. */
export type ProgramJob = Extract<UserObject, { kind: "program" }>;

/** Settings of the density warm-up: higher densities in the first steps. */
export type DensityWarmup = NonNullable<Extract<CompressionJob, { kind: "top-k" | "random-k" }>["densityWarmup"]>;

/** Settings of optimizers that use layer statistics. */
export type CurvatureJob = Extract<OptimizerJob, { kind: "eva" | "eva-f" | "kfac" }>;

export type KfacJob = Extract<OptimizerJob, { kind: "kfac" }>;

/** Rule by which K-FAC factors, in the order in which they are computed, are grouped into messages. */
export type FactorBucketsJob = NonNullable<KfacJob["factorBuckets"]>;

/** Data settings of images that are decoded and resized to one size, for any kind of image file. */
export type DecodedJob = Extract<DataJob, { kind: "image-folder" | "image-manifest" | "image-parquet" | "webdataset" }>;

/** Means and standard deviations of image channels: one value per channel, or a single value for all channels. */
export type NormaliseJob = NonNullable<DecodedJob["normalise"]>;

/** Text data, divided into windows. */
export type TextJob = Omit<Extract<DataJob, { kind: "moby-dick" }>, "kind">;

/** A checkpoint in Hugging Face format. */
export type PretrainedJob = Extract<ModelJob, { kind: "pretrained" }>;

/** Image preprocessing of a pretrained model, as read from its preprocessor file. */
export type PreprocessorJob = NonNullable<PretrainedJob["preprocessor"]>;

/** Settings of the mixture of experts that replaces feed-forward layers. */
export type ExpertsJob = NonNullable<Extract<ModelJob, { kind: "gpt" }>["experts"]>;

/** Schedule by which ranks divide the work on sharded experts. */
export type ShardSchedule = Exclude<ExpertsJob["shards"], "none" | "auto">;

/** Settings for moving experts between ranks during training. */
export type PlacementJob = NonNullable<ExpertsJob["placement"]>;
