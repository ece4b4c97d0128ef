import { ModuleError } from "@skein/cli/node";
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
import { composed } from "./composed-graph.ts";

/**
 * Recording of a traced function: a graph with its outputs for each argument signature with which the function was
 * called. Unlike the function, the recording can be sent to the threads of ranks, where it computes the same results.
 */
export type Recording = Map<string, Pick<Traced, "graph" | "outputs">>;

/**
 * A traced function of trees of tensors. `extra` is an argument of plain data without tensors. Its value becomes part
 * of the graph, so each value has a separate graph.
 */
export type TracedFunction = (args: readonly unknown[], extra?: unknown) => unknown;

const signatureOf = (args: readonly unknown[], extra: unknown): string => {
  const { leaves, structure } = flattenTree<TensorSpec>(args);
  return JSON.stringify([structure, leaves.map(({ dtype, shape }) => [dtype, shape]), extra ?? null]);
};

/**
 * Returns a function that replays a recording within a trace in progress, as ranks do.
 *
 * @param what name of the function in errors.
 * @throws ModuleError if the argument signature was not recorded.
 */
export const replayed =
  (recording: Recording, what: string): TracedFunction =>
  (args, extra) => {
    const { leaves } = flattenTree<Tensor>(args);
    const found = recording.get(signatureOf(args, extra));
    if (found === undefined)
      throw new ModuleError(
        `${what} is an object of a program, whose functions were traced there; here they are called with ${leaves.map(formatSpec).join(", ")}, a signature that was not traced; put the object into a module and name it: { kind: "module", file }`,
      );
    return unflattenTree(found.outputs, replay(found.graph, leaves));
  };

/**
 * Returns a function that traces `fn` once per argument signature, adds the graph to `recording`, and returns the
 * result of replaying the graph.
 *
 * @param mesh mesh with the axes along which `fn` communicates. `fn` must not depend on the mesh coordinates of a rank.
 */
export const recorded =
  (
    recording: Recording,
    what: string,
    mesh: Mesh,
    fn: (args: readonly never[], extra: never) => unknown,
  ): TracedFunction =>
  (args, extra) => {
    const signature = signatureOf(args, extra);
    if (!recording.has(signature)) {
      const specs = unflattenTree<readonly TensorSpec[]>(
        flattenTree(args).structure,
        flattenTree<TensorSpec>(args).leaves.map(({ dtype, shape }) => ({ dtype, shape })),
      );
      const traced = trace((...own: readonly unknown[]) => fn(own as never, extra as never), specs as never, { mesh });
      const { graph, outputs } = composed(traced, what);
      recording.set(signature, { graph, outputs });
    }
    return replayed(recording, what)(args, extra);
  };
