export { loadBody, loadPretrained, readConfig } from "./node/load-pretrained.ts";
export { savePretrained, type SaveOptions } from "./node/save-pretrained.ts";
