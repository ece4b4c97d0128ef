import type { PreparedStep } from "skein-train/profiling";
import type { MemoryBlock, MemoryProfile } from "@skein/report";
import { byteLength } from "@skein/tensor-core";
import { formatSpec, spanNameOf, valueKey } from "@skein/tensor-core/backend";

interface Placed extends MemoryBlock {
  readonly begin: number;
  readonly end: number;
}

/** Bytes that at least one of some ranges covers; ranges in order of their begin. */
const covered = (ranges: readonly Placed[]): number => {
  let [bytes, reached] = [0, -Infinity];
  for (const { begin, end } of ranges) {
    if (end <= reached) continue;
    bytes += end - Math.max(begin, reached);
    reached = end;
  }
  return bytes;
};

/**
 * Values that have memory of their own. A view is part of what it looks at, which lives as long as the view is used.
 */
const blocksOf = (placed: readonly Placed[], settled: ReadonlySet<number>): Placed[] => {
  const blocks: { -readonly [key in keyof Placed]: Placed[key] }[] = [];
  for (const value of placed.toSorted((a, b) => a.from - b.from)) {
    const whole = settled.has(value.from)
      ? blocks.findLast(({ begin, end, to }) => begin <= value.begin && value.end <= end && value.from <= to)
      : undefined;
    if (whole === undefined) blocks.push({ ...value });
    else whole.to = Math.max(whole.to, value.to);
  }
  return blocks;
};

/** Blocks that are named in a report, of those alive at the peak and of all. */
const mostBlocks = 40;

/** The largest, and of those the largest that live at a position. */
const largest = (blocks: readonly Placed[], at: number): Placed[] => {
  const ordered = blocks.toSorted((a, b) => b.bytes - a.bytes);
  const chosen = new Set([
    ...ordered.filter(({ from, to }) => from <= at && at <= to).slice(0, mostBlocks),
    ...ordered.slice(0, mostBlocks),
  ]);
  return ordered.filter((block) => chosen.has(block));
};

/**
 * Tell what lies in memory at each node of a step, by its plan: intermediates in the workspace, and beside them what is
 * there all the time. Values that share memory, such as views and results in place, count once.
 *
 * Cost: O(nodes · values alive).
 *
 * @param residentBytes state and batch.
 */
export const memoryProfile = ({ graph, plan }: PreparedStep, residentBytes: number): MemoryProfile => {
  const lastUse = new Map<string, number>();
  for (const node of graph.nodes) for (const ref of node.inputs) lastUse.set(valueKey(ref), node.id);
  for (const ref of graph.outputs) lastUse.set(valueKey(ref), graph.nodes.length - 1);
  const slabBegins = plan.slabBytes.map((_, index) =>
    plan.slabBytes.slice(0, index).reduce((sum, bytes) => sum + bytes, 0),
  );
  const placed = graph.nodes
    .flatMap(({ id, op, scope, specs }) =>
      specs.flatMap((spec, output): Placed[] => {
        const place = plan.places.get(valueKey({ node: id, output }));
        const bytes = byteLength(spec);
        if (place === undefined || place.region !== "workspace" || bytes === 0) return [];
        const begin = slabBegins[place.index]! + place.offset;
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
  const starting = Map.groupBy(placed, ({ from }) => from);
  let alive: Placed[] = [];
  const liveBytes = graph.nodes.map(({ id }) => {
    alive = alive.filter(({ to }) => to >= id);
    const begun = starting.get(id);
    if (begun !== undefined) alive = [...alive, ...begun].sort((a, b) => a.begin - b.begin || b.end - a.end);
    return covered(alive);
  });
  const blocks = blocksOf(placed, plan.settled);
  const peak = liveBytes.indexOf(liveBytes.reduce((most, bytes) => Math.max(most, bytes), 0));
  return {
    residentBytes,
    liveBytes,
    workspaceBytes: plan.workspaceBytes,
    blocks: largest(blocks, peak).map(({ name, shape, bytes, from, to }) => ({ name, shape, bytes, from, to })),
  };
};
