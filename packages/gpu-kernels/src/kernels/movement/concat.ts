import { bytesPerElement, type DType } from "@skein/tensor-core";
import type { Pass } from "../../kernel.ts";
import { movingLanes, type UnitBytes, unitBinding, unitFunction, unitPass, unitSizes, unitType } from "./unit.ts";
import { wgsl } from "../../wgsl.ts";

/** An operand's columns of the joined rows. Counts in elements. */
interface Columns {
  readonly input: number;
  readonly begin: number;
  readonly width: number;
}

/** Rows of `rowWidth` elements, made of the columns of several operands. */
export interface JoinedRows {
  readonly rows: number;
  readonly rowWidth: number;
  readonly columns: readonly Columns[];
}

/**
 * Runs of neighbouring operands that are not there yet, at most so many at once. Operands without elements leave no
 * trace.
 */
const groupsOf = (columns: readonly Columns[], placed: readonly boolean[], most: number): Columns[][] => {
  const groups: Columns[][] = [];
  let open = false;
  for (const column of columns) {
    if (column.width === 0) continue;
    if (placed[column.input] === true) {
      open = false;
    } else if (open && groups.at(-1)!.length < most) {
      groups.at(-1)!.push(column);
    } else {
      groups.push([column]);
      open = true;
    }
  }
  return groups;
};

/**
 * The unit at `row` and `column`, counted from the group's first: a chain of comparisons finds the operand that has it.
 */
const choose = (group: readonly Columns[], step: number): string => {
  const first = group[0]!.begin;
  return group
    .map(({ input, begin, width }, i) => {
      const start = (begin - first) / step;
      const chosen = `bits_x${input}(row * ${width / step}u + column${start === 0 ? "" : ` - ${start}u`})`;
      return i === group.length - 1
        ? `return ${chosen};`
        : `if (column < ${start + width / step}u) { return ${chosen}; }`;
    })
    .join("\n");
};

/** All columns: the output is written from its first unit to its last. */
const wholePass = (
  { rows, rowWidth }: JoinedRows,
  group: readonly Columns[],
  elementBytes: number,
  bytes: UnitBytes,
): Pass => {
  const step = bytes / elementBytes;
  return unitPass({
    label: `concat ${group.length} operands ${bytes} bytes`,
    bindings: group.map(({ input }) => unitBinding(`x${input}`, bytes, { input }, "read")),
    bytes,
    units: (rows * rowWidth) / step,
    code: wgsl`
      ${group.map(({ input }) => unitFunction(`x${input}`, bytes))}
      fn element(at: u32) -> ${unitType(bytes)} {
        let row = at / ${rowWidth / step}u;
        let column = at % ${rowWidth / step}u;
        ${choose(group, step)}
      }
    `,
  });
};

/** Some columns, of whole units: every invocation moves one unit to its place. */
const unitColumnsPass = (
  { rows, rowWidth }: JoinedRows,
  group: readonly Columns[],
  elementBytes: number,
  bytes: UnitBytes,
): Pass => {
  const step = bytes / elementBytes;
  const begin = group[0]!.begin;
  const width = (group.at(-1)!.begin + group.at(-1)!.width - begin) / step;
  const units = rows * width;
  return {
    label: `concat ${group.length} operands ${bytes} bytes`,
    bindings: [
      ...group.map(({ input }) => unitBinding(`x${input}`, bytes, { input }, "read")),
      unitBinding("y", bytes, { output: 0 }, "write"),
    ],
    workgroupSize: movingLanes,
    groups: Math.ceil(units / movingLanes),
    sizes: { units },
    code: wgsl`
      ${group.map(({ input }) => unitFunction(`x${input}`, bytes))}
      fn element(row: u32, column: u32) -> ${unitType(bytes)} {
        ${choose(group, step)}
      }
      fn main(group: u32, lane: u32) {
        let at = group * ${movingLanes}u + lane;
        if (at >= sizes.units) { return; }
        let row = ${rows === 1 ? "0u" : `at / ${width}u`};
        let column = ${rows === 1 ? "at" : `at % ${width}u`};
        y[${rows === 1 ? "" : `row * ${rowWidth / step}u + `}${begin / step}u + column] = element(row, column);
      }
    `,
  };
};

/**
 * Some columns, which begin or end within a word: every invocation owns a word of the output, in which other elements
 * stay as they are.
 */
const wordsPass = ({ rows, rowWidth }: JoinedRows, group: readonly Columns[], elementBytes: 1 | 2): Pass => {
  const perWord = 4 / elementBytes;
  const begin = group[0]!.begin;
  const width = group.at(-1)!.begin + group.at(-1)!.width - begin;
  const firstWord = rows === 1 ? Math.floor(begin / perWord) : 0;
  const endWord = Math.ceil((rows === 1 ? begin + width : rows * rowWidth) / perWord);
  const parts = Array.from(
    { length: perWord },
    (_, i) => `(element(${perWord}u * word + ${i}u) << ${8 * elementBytes * i}u)`,
  );
  return {
    label: `concat ${group.length} operands by words`,
    bindings: [
      ...group.map(({ input }) => unitBinding(`x${input}`, elementBytes, { input }, "read")),
      unitBinding("y", elementBytes, { output: 0 }, "write"),
    ],
    workgroupSize: movingLanes,
    groups: Math.ceil((endWord - firstWord) / movingLanes),
    sizes: { first: firstWord, end: endWord },
    code: wgsl`
      ${group.map(({ input }) => unitFunction(`x${input}`, elementBytes))}
      ${unitFunction("y", elementBytes)}
      fn element(at: u32) -> u32 {
        let row = at / ${rowWidth}u;
        let column = at % ${rowWidth}u - ${begin}u;
        if (column >= ${width}u) { return bits_y(at); }
        ${choose(group, 1)}
      }
      fn main(group: u32, lane: u32) {
        let word = sizes.first + group * ${movingLanes}u + lane;
        if (word >= sizes.end) { return; }
        y[word] = ${parts.join(" | ")};
      }
    `,
  };
};

/**
 * Join the columns of operands into rows, several operands in one pass. Cost: each element that is not in its place is
 * read and written once; words that operands of several passes share are written once by each.
 *
 * @param placed operands that lie in the output already.
 * @param most operands that one pass can bind.
 */
export const concatPasses = (joined: JoinedRows, dtype: DType, placed: readonly boolean[], most: number): Pass[] => {
  const elementBytes = bytesPerElement[dtype];
  return groupsOf(joined.columns, placed, most).map((group) => {
    const counts = [
      ...(joined.rows === 1 ? [] : [joined.rowWidth]),
      ...group.flatMap(({ begin, width }) => [begin, width]),
    ];
    const bytes = unitSizes.find(
      (size) => size >= elementBytes && counts.every((count) => count % (size / elementBytes) === 0),
    )!;
    if (group.reduce((sum, { width }) => sum + width, 0) === joined.rowWidth)
      return wholePass(joined, group, elementBytes, bytes);
    return bytes >= 4
      ? unitColumnsPass(joined, group, elementBytes, bytes)
      : wordsPass(joined, group, elementBytes as 1 | 2);
  });
};
