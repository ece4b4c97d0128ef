import { byteLength, type Graph, type TensorSpec } from "@skein/tensor-core";
import { eliminateDeadCode, type Node } from "@skein/tensor-core/backend";

const isRagged = ({ op }: Node): boolean => op.startsWith("ragged-");

/**
 * Returns the number of bytes that a rank sends in a collective, divided by the bytes of its operand, averaged over
 * ranks. Assumes the algorithm that sends the fewest bytes. Undefined for nodes that send nothing.
 */
const sentShare = ({ op, params }: Node): number | undefined => {
  const numRanks = params["axisSize"] as number;
  switch (op) {
    case "all-reduce":
      return (2 * (numRanks - 1)) / numRanks;
    case "all-gather":
    case "ragged-all-gather":
      return numRanks - 1;
    case "reduce-scatter":
    case "all-to-all":
    case "ragged-all-to-all":
    case "broadcast":
    case "reduce":
      return (numRanks - 1) / numRanks;
    case "send-receive":
      return (
        (params["pairs"] as readonly (readonly [number, number])[]).filter(([from, to]) => from !== to).length /
        numRanks
      );
    default:
      return undefined;
  }
};

/** Returns the nodes that send bytes. */
export const collectiveNodes = (graph: Graph): Node[] => graph.nodes.filter((node) => sentShare(node) !== undefined);

const operandOf = ({ nodes }: Graph, { inputs }: Node): TensorSpec => nodes[inputs[0]!.node]!.specs[inputs[0]!.output]!;

const sentBy = (graph: Graph, counts: (node: Node) => boolean): number =>
  graph.nodes.reduce((sum, node) => {
    const share = sentShare(node);
    return share === undefined || !counts(node) ? sum : sum + share * byteLength(operandOf(graph, node));
  }, 0);

/**
 * Returns the bytes that a rank sends when it runs this graph, averaged over ranks; the maximum for ragged collectives.
 * Ragged collectives also send row counts to every rank, 4 (P − 1) bytes each; these bytes are not counted, like
 * message headers.
 */
export const collectiveBytes = (graph: Graph): number => sentBy(eliminateDeadCode(graph), () => true);

/** Returns the bytes that a rank sends when it runs this graph, averaged over ranks, excluding ragged collectives. */
export const fixedBytes = (graph: Graph): number => sentBy(eliminateDeadCode(graph), (node) => !isRagged(node));

/**
 * Returns the number of bytes that small all-reduces between threads transfer in addition to `collectiveBytes`. In
 * all-reduces of up to 16 KiB, each thread reads the operands of all other threads, which are more bytes than a
 * schedule sends.
 */
export const exchangedBytes = (graph: Graph): number => {
  const lean = eliminateDeadCode(graph);
  return lean.nodes.reduce((sum, node) => {
    if (node.op !== "all-reduce") return sum;
    const others = (node.params["axisSize"] as number) - 1;
    const bytes = byteLength(operandOf(lean, node));
    return others * bytes > 16_384 ? sum : sum + (others - sentShare(node)!) * bytes;
  }, 0);
};

export const raggedNodes = (graph: Graph): Node[] => graph.nodes.filter(isRagged);

/**
 * Returns the bytes of rows that a rank sends by a ragged collective.
 *
 * @param rows second operand of the collective.
 * @param rank index of the rank along the axis.
 */
export const raggedSent = (graph: Graph, node: Node, rows: ArrayLike<number>, rank: number): number => {
  const { dtype, shape } = operandOf(graph, node);
  const bytesPerRow = byteLength({ dtype, shape: shape.slice(1) });
  const toOthers =
    node.op === "ragged-all-gather"
      ? rows[0]! * ((node.params["axisSize"] as number) - 1)
      : Array.from(rows).reduce((sum, count, to) => sum + (to === rank ? 0 : count), 0);
  return toOthers * bytesPerRow;
};
