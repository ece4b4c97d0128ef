import {
  add,
  type CutStep,
  evaluate,
  flattenTree,
  full,
  type NdArray,
  referenceBackend,
  stageBackward,
  stageForward,
  type StageForward,
  type Tensor,
  valueAndGradWithAux,
} from "../src/index.ts";

/** Function from parameters by name and further arguments to a loss and further results. */
export type Loss = (params: Record<string, Tensor>, ...rest: readonly Tensor[]) => readonly [Tensor, readonly Tensor[]];

/** Results of a training step: loss, further results and gradients, in the order of leaves. */
export type StepResult = readonly Tensor[];

/** Creates a function that runs the forward passes of all stages, then the backward passes in reverse order. */
export const throughStages =
  ({ stages }: CutStep) =>
  (params: Record<string, Tensor>, ...rest: readonly Tensor[]): StepResult => {
    const own = flattenTree<Tensor>(params).leaves;
    const passed: StageForward[] = [];
    const aux: Tensor[] = [];
    for (const stage of stages) {
      const result = stageForward(stage, {
        params: stage.params.map((leaf) => own[leaf]!),
        args: stage.args.map((leaf) => rest[leaf]!),
        incoming: passed.at(-1)?.outgoing ?? [],
      });
      stage.aux.forEach((leaf, i) => (aux[leaf] = result.aux[i]!));
      passed.push(result);
    }
    const loss = passed.at(-1)!.outgoing[0]!;
    const gradients: Tensor[] = [];
    let cotangents: readonly Tensor[] = [full([], 1, loss.dtype)];
    for (let s = stages.length - 1; s >= 0; s--) {
      const stage = stages[s]!;
      const back = stageBackward(stage, passed[s]!.kept, cotangents);
      stage.params.forEach((leaf, i) => {
        const known = gradients[leaf];
        gradients[leaf] = known === undefined ? back.params[i]! : add(known, back.params[i]!);
      });
      cotangents = back.incoming;
    }
    return [loss, ...aux, ...gradients];
  };

/** Creates a function that runs the whole step without cuts. */
export const whole =
  (loss: Loss, cuts: readonly string[] = []) =>
  (params: Record<string, Tensor>, ...rest: readonly Tensor[]): StepResult => {
    const { value, aux, grads, taps } = valueAndGradWithAux(loss, { taps: true })(params, ...rest);
    return [value, ...aux, ...flattenTree<Tensor>(grads).leaves, ...cuts.map((name) => taps[name]!.cotangent)];
  };

/** Runs a step on the reference backend, and returns the elements of each result. */
export const run = async (
  step: (params: Record<string, Tensor>, ...rest: readonly Tensor[]) => StepResult,
  args: readonly [Record<string, NdArray>, ...NdArray[]],
  options: Parameters<typeof evaluate>[2] = {},
): Promise<number[][]> =>
  ((await evaluate(step as never, referenceBackend(), options)(...(args as never as []))) as unknown as NdArray[]).map(
    (one) => one.toNumbers(),
  );
