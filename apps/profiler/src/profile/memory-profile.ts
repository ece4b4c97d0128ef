import type { PreparedStep } from "skein-train/profiling";
import type { MemoryBlock, MemoryProfile } from "@skein/report";
import { byteLength } from "@skein/tensor-core";
import { formatSpec, spanNameOf, valueKey } from "@skein/tensor-core/backend";

interface PlacedBlock extends MemoryBlock {
  readonly begin: number;
  readonly end: number;
}

/** Returns the number of bytes covered by at least one range. Ranges are sorted by their start. */
const covered = (ranges: readonly PlacedBlock[]): number => {
  let [bytes, reached] = [0, -Infinity];
  for (const { begin, end } of ranges) {
    if (end <= reached) continue;
    bytes += end - Math.max(begin, reached);
    reached = end;
  }
  return bytes;
};

/**
 * Merges values into memory blocks. A view is part of the block that it views, and extends the lifetime of this block.
 */
const blocksOf = (values: readonly PlacedBlock[], settled: ReadonlySet<number>): PlacedBlock[] => {
  const blocks: { -readonly [key in keyof PlacedBlock]: PlacedBlock[key] }[] = [];
  for (const value of values.toSorted((a, b) => a.from - b.from)) {
    const whole = settled.has(value.from)
      ? blocks.findLast(({ begin, end, to }) => begin <= value.begin && value.end <= end && value.from <= to)
      : undefined;
    if (whole === undefined) blocks.push({ ...value });
    else whole.to = Math.max(whole.to, value.to);
  }
  return blocks;
};

/** Maximum number of blocks in a report: largest blocks alive at the peak, and separately largest blocks overall. */
const maxBlocks = 40;

/** Returns the largest blocks overall, and the largest blocks alive at node `peak`; largest first. */
const largest = (blocks: readonly PlacedBlock[], peak: number): PlacedBlock[] => {
  const ordered = blocks.toSorted((a, b) => b.bytes - a.bytes);
  const chosen = new Set([
    ...ordered.filter(({ from, to }) => from <= peak && peak <= to).slice(0, maxBlocks),
    ...ordered.slice(0, maxBlocks),
  ]);
  return ordered.filter((block) => chosen.has(block));
};

/**
 * Computes the memory in use at each node of a step from the memory plan: intermediate values in the workspace, plus
 * memory that is always in use. Memory shared by several values, such as views and in-place results, is counted once.
 *
 * Cost: O(nodes · values alive).
 *
 * @param residentBytes Bytes that are in use during the whole step: state and batch.
 */
export const memoryProfile = ({ graph, plan }: PreparedStep, residentBytes: number): MemoryProfile => {
  const lastUse = new Map<string, number>();
  for (const node of graph.nodes) for (const ref of node.inputs) lastUse.set(valueKey(ref), node.id);
  for (const ref of graph.outputs) lastUse.set(valueKey(ref), graph.nodes.length - 1);
  const slabBegins = plan.slabBytes.map((_, index) =>
    plan.slabBytes.slice(0, index).reduce((sum, bytes) => sum + bytes, 0),
  );
  const values = graph.nodes
    .flatMap(({ id, op, scope, specs }) =>
      specs.flatMap((spec, output): PlacedBlock[] => {
        const placement = plan.places.get(valueKey({ node: id, output }));
        const bytes = byteLength(spec);
        if (placement === undefined || placement.region !== "workspace" || bytes === 0) return [];
        const begin = slabBegins[placement.index]! + placement.offset;
        return [
          {
            name: spanNameOf(op, scope),
            shape: formatSpec(spec),
            bytes,
            from: id,
            to: lastUse.get(valueKey({ node: id, output })) ?? id,
            begin,
            end: begin + bytes,
          },
        ];
      }),
    )
    .sort((a, b) => a.begin - b.begin || b.end - a.end);
  const starting = Map.groupBy(values, ({ from }) => from);
  let alive: PlacedBlock[] = [];
  const liveBytes = graph.nodes.map(({ id }) => {
    alive = alive.filter(({ to }) => to >= id);
    const started = starting.get(id);
    if (started !== undefined) alive = [...alive, ...started].sort((a, b) => a.begin - b.begin || b.end - a.end);
    return covered(alive);
  });
  const blocks = blocksOf(values, plan.settled);
  const peak = liveBytes.indexOf(liveBytes.reduce((most, bytes) => Math.max(most, bytes), 0));
  return {
    residentBytes,
    liveBytes,
    workspaceBytes: plan.workspaceBytes,
    blocks: largest(blocks, peak).map(({ name, shape, bytes, from, to }) => ({ name, shape, bytes, from, to })),
  };
};
