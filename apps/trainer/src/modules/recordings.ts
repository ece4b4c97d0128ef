import {
  flattenTree,
  type Mesh,
  type Tensor,
  type TensorSpec,
  trace,
  type Traced,
  unflattenTree,
} from "@skein/tensor-core";
import { formatSpec, replay } from "@skein/tensor-core/backend";
import { ModuleError } from "../errors.ts";
import { composed } from "./composed-graph.ts";

/**
 * A traced function of a program as plain data: its graph for each signature that it was called with. The function
 * itself cannot be sent to the threads of ranks; this can, and computes the same.
 */
export type Recording = Map<string, Pick<Traced, "graph" | "outputs">>;

/** A function of trees of tensors, and of what else decides which graph it has. */
export type TracedFunction = (args: readonly unknown[], beside?: unknown) => unknown;

const signatureOf = (args: readonly unknown[], beside: unknown): string => {
  const { leaves, structure } = flattenTree<TensorSpec>(args);
  return JSON.stringify([structure, leaves.map(({ dtype, shape }) => [dtype, shape]), beside ?? null]);
};

/**
 * The same function, called within a running trace as ranks will: by its recording.
 *
 * @param what names it in errors.
 * @throws ModuleError for a signature that was not recorded.
 */
export const replayed =
  (recording: Recording, what: string): TracedFunction =>
  (args, beside) => {
    const { leaves } = flattenTree<Tensor>(args);
    const found = recording.get(signatureOf(args, beside));
    if (found === undefined)
      throw new ModuleError(
        `${what} is an object of a program, whose functions were traced there once; they are called here with ${leaves.map(formatSpec).join(", ")}, which they were not traced with; put it into a module and name it: { kind: "module", file }`,
      );
    return unflattenTree(found.outputs, replay(found.graph, leaves));
  };

/**
 * The same function, which writes down each graph of its own that it has not yet.
 *
 * @param mesh that collectives of the function name axes of. It must not depend on the place of a rank along them.
 */
export const recorded =
  (
    recording: Recording,
    what: string,
    mesh: Mesh,
    fn: (args: readonly never[], beside: never) => unknown,
  ): TracedFunction =>
  (args, beside) => {
    const signature = signatureOf(args, beside);
    if (!recording.has(signature)) {
      const specs = unflattenTree<readonly TensorSpec[]>(
        flattenTree(args).structure,
        flattenTree<TensorSpec>(args).leaves.map(({ dtype, shape }) => ({ dtype, shape })),
      );
      const traced = trace((...own: readonly unknown[]) => fn(own as never, beside as never), specs as never, { mesh });
      const { graph, outputs } = composed(traced, what);
      recording.set(signature, { graph, outputs });
    }
    return replayed(recording, what)(args, beside);
  };
