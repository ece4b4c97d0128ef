export { OnnxError } from "./errors.ts";
export { exportOnnx, exportOnnxFiles, type OnnxFiles, type OnnxFilesOptions, type OnnxSource } from "./export-onnx.ts";
