import { elementCount, type TensorSpec } from "@skein/tensor-core";
import type { DeviceFacts, KernelPlan } from "../../kernel.ts";
import { depthwisePass } from "./depthwise.ts";
import { type Gather, innerLength, phasesOf, rowsOf } from "./gather.ts";
import type { Stored } from "./gather-wgsl.ts";
import { flattenPointwise, type Geometry, isDepthwise } from "./geometry.ts";
import { stripPass } from "./strip.ts";
import { fillPass } from "../generators/fill.ts";
import { sumPartialsPass } from "./sum-partials.ts";
import { type Tile, tiledPass } from "./tiled.ts";
import { stripWeightGroups, stripWeightPass } from "./weight-strip.ts";
import { tiledWeightPass } from "./weight-tiled.ts";
import { pixelsOf, weightLength, weightSizes } from "./weight-wgsl.ts";

/**
 * Tiles that the tiled convolution kernels choose from, largest first. With 8 × 8 sums per invocation, 16 vector loads
 * from workgroup memory serve 64 products.
 */
export const tiles: readonly Tile[] = [
  { rows: 128, columns: 64, inner: 16, rowsEach: 8, columnsEach: 8 },
  { rows: 64, columns: 64, inner: 16, rowsEach: 8, columnsEach: 8 },
  { rows: 128, columns: 32, inner: 16, rowsEach: 8, columnsEach: 4 },
  { rows: 64, columns: 32, inner: 16, rowsEach: 8, columnsEach: 4 },
  { rows: 32, columns: 32, inner: 32, rowsEach: 4, columnsEach: 4 },
];

/**
 * Returns the number of workgroups that keeps a device busy: several per core of a large GPU, one or two per thread of
 * a CPU.
 */
const wantedGroups = (facts: DeviceFacts): number => (facts.software ? 16 : 512);

/**
 * Batch size for which the split of sums is chosen. The actual batch size has no influence, because the result of a
 * sample must be bitwise identical alone and in a batch.
 */
const usualBatch = 16;

const groupsOf = (tile: Tile, rows: number, columns: number): number =>
  Math.ceil(rows / tile.rows) * Math.ceil(columns / tile.columns);

/**
 * Returns the largest tile that leaves enough workgroups for all cores of the device. Wide tiles are only for wide
 * results.
 */
export const chooseTile = (rows: number, columns: number, copies: number, facts: DeviceFacts): Tile => {
  const fitting = tiles.filter((tile) => columns > 32 || tile.columns === 32);
  return fitting.find((tile) => copies * groupsOf(tile, rows, columns) >= wantedGroups(facts) / 2) ?? fitting.at(-1)!;
};

/**
 * Returns the number of parts into which sums of `length` terms are split, so that the workgroups (`groups` per part)
 * fill the device. Each part has at least `least` terms.
 */
export const chooseSplits = (groups: number, length: number, least: number, facts: DeviceFacts): number =>
  Math.max(1, Math.min(Math.floor(length / least), Math.floor(wantedGroups(facts) / groups), 256));

const storedOf = ({ dtype }: TensorSpec): Stored => (dtype === "f16" ? "f16" : "f32");

/**
 * Returns the plan of a convolution or of its image gradient. `gatherOf` returns the `Gather` for given sizes of the
 * convolution.
 */
export const gatherPlan = (
  geometry: Geometry,
  gatherOf: (geometry: Geometry) => Gather,
  operand: TensorSpec,
  output: TensorSpec,
  facts: DeviceFacts,
): KernelPlan => {
  const gather = gatherOf(flattenPointwise(geometry));
  const [operands, result] = [storedOf(operand), storedOf(output)];
  const { inner, columns, groups } = gather;
  const length = innerLength(gather);
  const rows = rowsOf(gather);
  if (length === 0 || elementCount(operand.shape) === 0) return { passes: [fillPass(output, 0)] };
  const pixels = facts.software || rows * columns * groups >= 2 ** 18 ? 4 : 1;
  if (isDepthwise(geometry)) return { passes: [depthwisePass(gather, { pixels, operands, result })] };
  if (facts.software || length < 48 || columns < 12)
    return { passes: [stripPass(gather, { pixels, operands, result })] };
  const copies = groups * phasesOf(gather);
  const tile = chooseTile(rows, columns, copies, facts);
  const usualRows = geometry.batch === 0 ? 0 : (rows / geometry.batch) * usualBatch;
  const usualTile = chooseTile(usualRows, columns, copies, facts);
  const usualGroups = copies * groupsOf(usualTile, usualRows, columns);
  const splits = inner % 4 === 0 ? chooseSplits(usualGroups, length, 256, facts) : 1;
  if (splits === 1) return { passes: [tiledPass(gather, { tile, splits, operands, result })] };
  const each = Math.ceil(elementCount(output.shape) / 4) * 4;
  return {
    scratch: [4 * splits * each],
    passes: [
      tiledPass(gather, { tile, splits, operands, result: "f32" }),
      sumPartialsPass({ count: splits, length: each, result }),
    ],
  };
};

/** Returns the plan of the weight gradient. */
export const weightPlan = (
  geometry: Geometry,
  operand: TensorSpec,
  output: TensorSpec,
  facts: DeviceFacts,
): KernelPlan => {
  const [operands, result] = [storedOf(operand), storedOf(output)];
  const { rows, columns } = weightSizes(geometry);
  const pixels = pixelsOf(geometry);
  if (pixels === 0) return { passes: [fillPass(output, 0)] };
  const strip = facts.software || isDepthwise(geometry) || rows <= 32 || columns < 12;
  const tile = chooseTile(rows, columns, geometry.groups, facts);
  const groups = strip ? stripWeightGroups(geometry) : geometry.groups * groupsOf(tile, rows, columns);
  const splits = chooseSplits(groups, pixels, 128, facts);
  const each = weightLength(geometry);
  const options = { splits, operands, result: splits > 1 ? "f32" : result } as const;
  const pass = strip ? stripWeightPass(geometry, options) : tiledWeightPass(geometry, { ...options, tile });
  return splits === 1
    ? { passes: [pass] }
    : { scratch: [4 * splits * each], passes: [pass, sumPartialsPass({ count: splits, length: each, result })] };
};
