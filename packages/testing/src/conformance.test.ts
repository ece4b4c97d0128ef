import { absolute, type Backend, NdArray, referenceBackend } from "@skein/tensor-core";
import { describe, expect, test } from "vitest";
import { checkValues } from "./conformance.ts";
import type { ConformanceCase } from "./conformance-case.ts";

const row: ConformanceCase = {
  op: "absolute",
  name: "subnormals",
  fn: (x) => absolute(x!),
  inputs: [NdArray.from([1e-40, -2e-39, 3])],
  tolerance: { absolute: 0, relative: 0 },
};

const reference = referenceBackend();

/** A backend that treats numbers smaller than `bound` as 0. */
const flushing = (bound: number): Backend => ({
  ...reference,
  upload: (array) =>
    reference.upload(
      NdArray.from(
        array.toNumbers().map((value) => (Math.abs(value) < bound ? 0 : value)),
        array.shape,
        array.dtype,
      ),
    ),
});

describe("checkValues", () => {
  test("accepts flushed subnormals only if the option allows it", async () => {
    await checkValues(row, reference);
    await expect(checkValues(row, flushing(2 ** -126))).rejects.toThrow(/element 0 is 0/);
    await checkValues(row, flushing(2 ** -126), { subnormals: "flushed" });
  });

  test("rejects flushing of normal numbers", async () => {
    const normal = { ...row, inputs: [NdArray.from([2 ** -125])] };
    await expect(checkValues(normal, flushing(2 ** -124), { subnormals: "flushed" })).rejects.toThrow(/element 0 is 0/);
  });
});
