import type { Backend, DeviceArray, Executable } from "../execution/backend.ts";
import { foreignArray } from "../execution/foreign-array.ts";
import type { Graph } from "../graph/graph.ts";
import type { ReferenceArray } from "../graph/operator.ts";
import { NdArray } from "../nd-array.ts";
import { collectiveOrderOf } from "../passes/collective-order.ts";
import { PrintableDeviceArray } from "../printable.ts";
import { interpretWorld, prepareForReference } from "./interpret.ts";

class ReferenceDeviceArray extends PrintableDeviceArray implements DeviceArray {
  readonly dtype: ReferenceArray["spec"]["dtype"];
  readonly shape: ReferenceArray["spec"]["shape"];
  readonly value: ReferenceArray;

  protected override dispose(): void {} // elements are in JavaScript memory and are garbage-collected

  constructor(value: ReferenceArray) {
    super();
    this.dtype = value.spec.dtype;
    this.shape = value.spec.shape;
    this.value = value;
  }
}

const valueOf = (array: DeviceArray): ReferenceArray => {
  if (array instanceof ReferenceDeviceArray) return array.value;
  throw foreignArray(array);
};

/**
 * Creates a backend that runs the f64 interpreter: one rank, no fusion. Results are rounded to f32 only on download.
 *
 * @example
 * ```ts
 * const doubled = await evaluate((x: Tensor) => multiply(x, 2), referenceBackend())(NdArray.from([1, 2]));
 * console.log(doubled.toNumbers()); // [2, 4]
 * ```
 */
export const referenceBackend = (): Backend => ({
  name: "reference",
  compile: (source: Graph): Executable => {
    const graph = prepareForReference(source);
    return {
      workspaceBytes: 0,
      get collectives() {
        return collectiveOrderOf(graph);
      },
      run: async (inputs) =>
        interpretWorld(graph, [inputs.map(valueOf)])[0]!.map((value) => new ReferenceDeviceArray(value)),
      release: () => {},
    };
  },
  upload: (array) =>
    new ReferenceDeviceArray({
      spec: { dtype: array.dtype, shape: array.shape },
      data: Float64Array.from(array.toNumbers()),
    }),
  download: async (array) => NdArray.from(valueOf(array).data, array.shape, array.dtype),
  free: () => {},
});
