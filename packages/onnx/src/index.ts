export { OnnxError } from "./errors.ts";
export { exportOnnx, type OnnxSource } from "./export-onnx.ts";
