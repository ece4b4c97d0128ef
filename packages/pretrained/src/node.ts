export { type FoundImageProcessor, loadImageProcessor } from "./node/load-image-processor.ts";
export { loadBody, loadPretrained, readConfig } from "./node/load-pretrained.ts";
export { savePretrained, type SaveOptions } from "./node/save-pretrained.ts";
