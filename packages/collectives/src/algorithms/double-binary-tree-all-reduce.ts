import { costOfRounds, type Message, type MessageRound } from "../cost.ts";
import { segmented } from "../interleave.ts";
import { type Algorithm, chunkOf, type ElementRange, input, output, type Step, withoutEmpty } from "../schedule.ts";

/**
 * A node of a binary tree over positions 0 … size − 1. Every odd position is a leaf, and an inner node is between its
 * two children.
 */
interface TreeNode {
  readonly parent: number | undefined;
  readonly children: readonly number[];
  readonly depth: number;
}

/**
 * Returns the parent of position b·2^z, where b is odd. Of the positions (b − 1)·2^z and (b + 1)·2^z, the parent is the
 * odd multiple of 2^(z+1), or the lower position if this odd multiple is ≥ `size`. Position 0 is the root; its parent
 * is undefined.
 */
const parentOf = (position: number, size: number): number | undefined => {
  if (position === 0) return undefined;
  const low = position & -position;
  const odd = (position - low) % (4 * low) === 0 ? position + low : position - low;
  return odd < size ? odd : position - low;
};

const treeOf = (size: number): TreeNode[] => {
  const parents = Array.from({ length: size }, (_, position) => parentOf(position, size));
  const children: number[][] = parents.map(() => []);
  for (const [position, parent] of parents.entries()) if (parent !== undefined) children[parent]!.push(position);
  const depthOf = (position: number): number => (parents[position] === undefined ? 0 : 1 + depthOf(parents[position]));
  return parents.map((parent, position) => ({ parent, children: children[position]!, depth: depthOf(position) }));
};

/**
 * Returns the nodes of all ranks in both trees. In the second tree, ranks are mirrored (P even) or shifted by one (P
 * odd), so that an inner node of one tree is a leaf of the other tree. If P is odd, only rank 0 is an inner node of
 * both trees.
 */
const treeNodes = (worldSize: number): readonly (readonly TreeNode[])[] => {
  const tree = treeOf(worldSize);
  const move = (rank: number): number => (worldSize % 2 === 0 ? worldSize - 1 - rank : (rank + 1) % worldSize);
  const second: TreeNode[] = [];
  for (const [position, { parent, children, depth }] of tree.entries())
    second[move(position)] = {
      parent: parent === undefined ? undefined : move(parent),
      children: children.map(move),
      depth,
    };
  return [tree, second];
};

const heightOf = (worldSize: number): number => Math.ceil(Math.log2(worldSize));

/**
 * All-reduce by two binary trees, each for one half of the vector: sums go up to the root, and the result goes down to
 * the leaves. Inner ranks of one tree are leaves of the other tree, so both directions of every link are in use if the
 * vector is segmented.
 *
 * Cost: 2⌈log₂P⌉ + s − 1 rounds for s segments; 2S bytes per rank (P ≥ 4), compared with 2(1 − 1/P) · S in a ring.
 * Unlike in a ring, the number of rounds grows only with log P. Source: Sanders, Speck and Träff, "Two-tree algorithms
 * for full bandwidth broadcast, reduction and scan", 2009.
 * @example
 * ```ts
 * const { rounds } = doubleBinaryTreeAllReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 4
 * ```
 */
export const doubleBinaryTreeAllReduce: Algorithm = segmented(
  {
    name: "double-binary-tree-all-reduce",
    kind: "all-reduce",
    rankOrder: false,
    schedule: ({ rank, worldSize, elementCount }) => {
      const height = heightOf(worldSize);
      const rounds: Step[][] = Array.from({ length: Math.max(1, 2 * height) }, () => []);
      if (worldSize === 1)
        rounds[0]!.push({ action: "copy", source: input(0, elementCount), target: output(0, elementCount) });
      else {
        for (const [half, nodes] of treeNodes(worldSize).entries()) {
          const { parent, children, depth } = nodes[rank]!;
          const [offset, count] = chunkOf(elementCount, 2, half);
          const operand = input(offset, count);
          const sum = output(offset, count);
          const subtree: ElementRange = children.length === 0 ? operand : sum;
          const fromBelow = height - depth - 1;
          for (const peer of children) {
            rounds[fromBelow]!.push({ action: "receive", combine: "reduce", peer, target: sum, own: operand });
            rounds[height + depth]!.push({ action: "send", peer, source: sum });
          }
          if (parent !== undefined) {
            rounds[fromBelow + 1]!.push({ action: "send", peer: parent, source: subtree });
            rounds[height + depth - 1]!.push({ action: "receive", combine: "replace", peer: parent, target: sum });
          }
        }
      }
      return { algorithm: "double-binary-tree-all-reduce", scratchElements: 0, rounds: withoutEmpty(rounds) };
    },
    cost: (parameters) => {
      const { worldSize, byteLength } = parameters;
      const height = heightOf(worldSize);
      const trees = treeNodes(worldSize);
      const bytes = byteLength / 2;
      const up = (depth: number): MessageRound => ({
        sends: (rank) =>
          trees.flatMap((nodes): Message[] =>
            nodes[rank]!.depth === depth && depth > 0 ? [{ peer: nodes[rank]!.parent!, bytes, summed: true }] : [],
          ),
      });
      const down = (depth: number): MessageRound => ({
        sends: (rank) =>
          trees.flatMap((nodes) =>
            nodes[rank]!.depth === depth ? nodes[rank]!.children.map((peer): Message => ({ peer, bytes })) : [],
          ),
      });
      const depths = Array.from({ length: height }, (_, depth) => depth);
      return costOfRounds(parameters, [...depths.map((depth) => up(height - depth)), ...depths.map(down)]);
    },
  },
  { maxSegments: 64, onePerPair: true },
);
