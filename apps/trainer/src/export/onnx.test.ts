import { expect, test } from "vitest";
import type { SavedRun } from "../output-folder/saved-run.ts";
import { exportOnnxModel } from "./onnx.ts";

test("rejects a mixture of experts", async () => {
  const run = { job: { model: { kind: "gpt", experts: { count: 4 } } } } as unknown as SavedRun;
  await expect(exportOnnxModel(run, "model.onnx")).rejects.toThrow(
    /^--format onnx: the model is a mixture of experts \(model\.experts\), which cannot be exported; export a run/,
  );
});
