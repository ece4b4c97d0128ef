import { SkeinError } from "@skein/tensor-core";

/** Thrown for functions that cannot be exported as an ONNX model. */
export class OnnxError extends SkeinError {
  override name = "OnnxError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "onnx", message, options);
  }
}
