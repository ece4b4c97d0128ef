export { checkpointSecret, type Manifest } from "./checkpoint-manifest.ts";
export { checkpointsFolder, folderName, type SavedFile, writePart } from "./checkpoint-part.ts";
export { cutsOf, ownPartOf, shardFile, shardFilesIn, wholeSpec, wholeTensors } from "./checkpoint-shards.ts";
export {
  type Checkpoint,
  checkpointNames,
  commitCheckpoint,
  discardPartial,
  hasCheckpoint,
  maxRemoved,
  type NamedTensors,
  newestCheckpoint,
  newestStep,
  partContent,
  rankFile,
  readCheckpoint,
  readPart,
  requireSameTensors,
  sharedFile,
  specsText,
  stepOfName,
} from "./checkpoint.ts";
export { dataPositionOf, requireSameStream, stepOffsetAfter } from "./data-position.ts";
export { differencesOf, flatSettings } from "./job-settings.ts";
export { type PartsToWrite, PartWriter } from "./part-writer.ts";
