import { expect, test } from "vitest";
import { type Kernel, kernelOf } from "./kernel.ts";

const bind = (): (() => void) => () => {};

test("a kernel must name an existing operator, and reads only its parameters", () => {
  const kernels: readonly Kernel[] = [
    kernelOf({ op: "top-k", refuses: ({ params }) => params.by, bind }),
    // @ts-expect-error: there is no operator `topk`
    kernelOf({ op: "topk", bind }),
    // @ts-expect-error: `top-k` has no parameter `order`
    kernelOf({ op: "top-k", refuses: ({ params }) => params.order, bind }),
  ];
  // The compiler is under test here. At run time, `kernelOf` returns the object that was passed.
  expect(kernels.map(({ op }) => op)).toEqual(["top-k", "topk", "top-k"]);
});
