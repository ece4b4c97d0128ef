import { bytesPerElement, elementCount } from "@skein/tensor-core";
import { invalidValue } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { partBegin } from "../team/team.ts";
import { fillPattern } from "../strided-copy.ts";

/** Estimated nanoseconds per gathered byte, in one thread. */
const byteNanoseconds = 0.03;

/** Gathers rows. Threads share the gathered rows. */
export const gatherKernel: Kernel = kernelOf({
  op: "gather",
  bind: ({ inputs: [x, indices], params }, _, __, team) => {
    const gatherRows = team.indexOf("gatherRows");
    const { dtype, shape } = x!;
    const dim = params.dim;
    const outer = elementCount(shape.slice(0, dim));
    const rowBytes = elementCount(shape.slice(dim + 1)) * bytesPerElement[dtype];
    const count = elementCount(indices!.shape);
    const pattern = fillPattern(params.outside === "zero" ? 0 : invalidValue[dtype], dtype);
    const size = shape[dim]!;
    const parts = team.partsOf(outer * count * rowBytes * byteNanoseconds, outer === 1 ? count : outer);
    return ([from, at], [to]) =>
      team.run(parts, (part, call) => {
        if (outer === 1) {
          const first = partBegin(count, part, parts);
          const some = partBegin(count, part + 1, parts) - first;
          call(gatherRows, to! + first * rowBytes, from!, at! + 4 * first, 1, size, rowBytes, some, pattern);
        } else {
          const first = partBegin(outer, part, parts);
          const some = partBegin(outer, part + 1, parts) - first;
          const [target, source] = [to! + first * count * rowBytes, from! + first * size * rowBytes];
          call(gatherRows, target, source, at!, some, size, rowBytes, count, pattern);
        }
      });
  },
});
