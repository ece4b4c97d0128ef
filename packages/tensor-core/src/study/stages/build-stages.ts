import { isFloat } from "../../dtype.ts";
import { ArgumentError } from "../../errors.ts";
import { type Graph, type Node, specOf, type ValueRef, valueKey } from "../../graph/graph.ts";
import { operators } from "../../ops/table.ts";
import { hasEffect } from "../../passes/dead-code.ts";
import { type Assignment, type Cuts, nameOf } from "./assign-stages.ts";
import { keptValues, type Reads, sourceOf } from "./kept-values.ts";
import { nodesWithin, sliceGraph } from "./slice-graph.ts";
import type { CutValue, KeptValue, Stage } from "./stage.ts";

/** Values at which the graph of a whole step (forward and backward) is cut into stages. */
export interface StepValues extends Omit<Cuts, "back"> {
  /** For each stage, the cotangents of its outgoing values. */
  readonly outgoingCotangents: readonly (readonly ValueRef[])[];
  /** For each stage, its contribution to the gradient of each parameter. */
  readonly gradients: readonly (readonly ValueRef[])[];
}

/**
 * For each node, returns the lowest stage on whose cotangents the node depends; `undefined` if the node does not depend
 * on cotangents.
 */
const lowestCotangentStage = (
  graph: Graph,
  outgoingCotangents: StepValues["outgoingCotangents"],
): (number | undefined)[] => {
  const stageOf = new Map(
    outgoingCotangents.flatMap((refs, stage) => refs.map((ref) => [valueKey(ref), stage] as const)),
  );
  const reached: (number | undefined)[] = [];
  for (const node of graph.nodes) {
    const stages = node.inputs.flatMap((ref) => stageOf.get(valueKey(ref)) ?? reached[ref.node] ?? []);
    reached.push(stages.length === 0 ? undefined : Math.min(...stages));
  }
  return reached;
};

const sortUnique = (numbers: Iterable<number>): number[] => [...new Set(numbers)].sort((a, b) => a - b);

/** Extracts the graph of each stage from the graph of the whole step. */
export const buildStages = (graph: Graph, step: StepValues, { stageOf, isFree, homeOf }: Assignment): Stage[] => {
  const { cuts, loss, aux, outgoingCotangents, gradients, numParams } = step;
  const leafOf = new Map(graph.inputs.map((node, leaf) => [valueKey({ node, output: 0 }), leaf]));
  const leafRef = (leaf: number): ValueRef => ({ node: graph.inputs[leaf]!, output: 0 });
  const reached = lowestCotangentStage(graph, outgoingCotangents);
  const effects = graph.nodes.filter(hasEffect).map(({ id }) => id);
  const hasGradient = ({ node }: ValueRef): boolean => {
    const { op, params } = graph.nodes[node]!;
    return operators[op]?.constantValue?.(params) !== 0;
  };

  const valuesOf = (names: readonly string[], refs: readonly ValueRef[]): CutValue[] =>
    refs.map((ref, i) => {
      const { dtype, shape } = specOf(graph, ref);
      return { name: names[i]!, spec: { dtype, shape }, hasCotangent: isFloat(dtype) };
    });

  /** Returns the forward values, the values kept for the backward pass, and the leaves that a stage reads. */
  const partOf = (stage: number) => {
    const incoming = cuts[stage - 1]?.values ?? [];
    const outgoing = cuts[stage]?.values ?? [loss];
    const auxLeaves = aux.flatMap((ref, leaf) => (homeOf(ref) === stage ? [leaf] : []));
    const results = [...outgoing, ...auxLeaves.map((leaf) => aux[leaf]!)];
    const ownEffects = effects.filter((id) => stageOf[id] === stage);
    const incomingKeys = new Set(incoming.map(valueKey));
    const leaves = new Set<number>();
    const within = (outputs: readonly ValueRef[]): Set<number> =>
      nodesWithin(
        graph,
        outputs,
        (key) => {
          const leaf = leafOf.get(key);
          if (leaf !== undefined) leaves.add(leaf);
          return leaf !== undefined || incomingKeys.has(key);
        },
        ownEffects,
      );
    const computed = within(results);

    const available = new Map<string, KeptValue>();
    graph.inputs.forEach((_, leaf) =>
      available.set(
        valueKey(leafRef(leaf)),
        leaf < numParams ? { from: "params", index: leaf } : { from: "args", index: leaf - numParams },
      ),
    );
    incoming.forEach((ref, index) => available.set(valueKey(ref), { from: "incoming", index }));
    const reads: Reads = {
      available,
      isForward: ({ id }: Node) => (isFree[id]! ? computed.has(id) : stageOf[id] === stage),
      visit: (ref) => {
        const found = isFree[ref.node]! ? undefined : (stageOf[ref.node] ?? reached[ref.node]);
        if (found !== undefined && found !== stage)
          throw new ArgumentError(
            `cutStages: ${nameOf(graph, ref)} of stage ${found} is read by the backward pass of stage ${stage}; a checkpoint region or a custom gradient must not span a cut: end it at the cut, and begin another`,
          );
      },
    };
    outgoing.forEach((ref, index) => {
      const key = valueKey(sourceOf(graph, ref, reads));
      if (!available.has(key)) available.set(key, { from: "outgoing", index });
    });
    const given = new Set(outgoingCotangents[stage]!.map(valueKey));
    const back = [
      ...(outgoingCotangents[stage - 1] ?? []),
      ...gradients[stage]!.filter(hasGradient),
      ...effects
        .filter((id) => stageOf[id] === undefined && reached[id] === stage)
        .flatMap((id) => graph.nodes[id]!.inputs),
    ];
    const kept = keptValues(graph, back, given, reads);
    within([...results, ...kept.saved]);
    for (const { from, index } of kept.values) {
      if (from === "params") leaves.add(index);
      if (from === "args") leaves.add(numParams + index);
    }
    gradients[stage]!.forEach((ref, leaf) => {
      if (hasGradient(ref)) leaves.add(leaf);
    });
    return { incoming, outgoing, auxLeaves, results, ownEffects, kept, leaves };
  };

  const parts = outgoingCotangents.map((_, stage) => partOf(stage));
  // The gradient of an unused parameter is zeros. Assign the parameter to stage 0.
  for (let leaf = 0; leaf < numParams; leaf++)
    if (!parts.some(({ leaves }) => leaves.has(leaf))) parts[0]!.leaves.add(leaf);

  return parts.map(({ incoming, outgoing, auxLeaves, results, ownEffects, kept, leaves }, stage) => {
    const params = sortUnique(leaves).filter((leaf) => leaf < numParams);
    const args = sortUnique(leaves).flatMap((leaf) => (leaf < numParams ? [] : [leaf - numParams]));
    const own = [...params, ...args.map((arg) => numParams + arg)].map(leafRef);
    return {
      params,
      args,
      incoming: valuesOf(cuts[stage - 1]?.names ?? [], incoming),
      outgoing: valuesOf(cuts[stage]?.names ?? ["loss"], outgoing),
      aux: auxLeaves,
      forward: sliceGraph(graph, {
        given: [...own, ...incoming].map((ref) => [ref]),
        outputs: [...results, ...kept.saved],
        effects: ownEffects,
      }),
      backward: sliceGraph(graph, {
        given: [...kept.names, ...outgoingCotangents[stage]!.map((ref) => [ref])],
        outputs: [...(outgoingCotangents[stage - 1] ?? []), ...params.map((leaf) => gradients[stage]![leaf]!)],
        effects: effects.filter((id) => stageOf[id] === undefined && reached[id] === stage),
      }),
      kept: kept.values.map((value) => ({
        ...value,
        index:
          value.from === "params"
            ? params.indexOf(value.index)
            : value.from === "args"
              ? args.indexOf(value.index)
              : value.index,
      })),
    };
  });
};
