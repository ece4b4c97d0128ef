import type { Binding, BindingSource } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";

/** Number of elements per register of an invocation. */
export type Lanes = 1 | 4;

/** Number of invocations per workgroup. Every device supports this number. */
export const workgroupSize = 256;

/** A field of a fold's state: one 32-bit word. */
export interface Field {
  readonly name: string;
  readonly type: "f32" | "u32";
  /** Initial value of the field. Combining a state with the initial state does not change the state. */
  readonly start: string;
}

/**
 * A reduction: the state of the elements processed so far, and the operation that combines two states. The operation is
 * associative up to rounding.
 */
export interface Fold {
  readonly label: string;
  readonly fields: readonly Field[];
  /**
   * Returns the fields of the combined state, as expressions over `a.<field>` and `b.<field>`. The statements `before`
   * are inserted before the expressions.
   */
  readonly join: (lanes: Lanes) => { readonly before?: string; readonly fields: readonly string[] };
}

/**
 * Input of a fold. Its WGSL defines `fn lift(at: u32, place: u32, column: u32) -> State`, which returns the state of
 * the elements from `lanes · at` on. `place` is the position of these elements along the folded dimension.
 */
export interface Source {
  readonly bindings: (lanes: Lanes, along: boolean) => readonly Binding[];
  /**
   * Returns the WGSL of `lift`, in which `column` counts registers across the folded dimension.
   *
   * @param along Whether the elements of a register are consecutive along the folded dimension, the first at `place`.
   * If false, they are adjacent elements at the same `place`.
   */
  readonly code: (lanes: Lanes, along: boolean) => string;
  /**
   * Returns WGSL of `fn lift_turn` (see `unrolledText`), for folds with a better method for several elements than
   * combining states one by one. Absent: a tree combines the states of single registers.
   */
  readonly unrolled?: (lanes: Lanes) => string;
}

/** Output of a fold. Its WGSL defines `fn store(at: u32, s: Result)`, which writes the states from `lanes · at` on. */
export interface Sink {
  readonly bindings: (lanes: Lanes) => readonly Binding[];
  readonly code: (lanes: Lanes) => string;
}

export const laneType = (type: string, lanes: Lanes): string => (lanes === 1 ? type : `vec4<${type}>`);

/** Returns WGSL of `struct <name>`, `fn start_<name>() -> <name>` and `fn join_<name>(a, b) -> <name>`. */
const structText = ({ fields, join }: Fold, name: string, lanes: Lanes): string => {
  const joined = join(lanes);
  return wgsl`
    struct ${name} { ${fields.map((field) => `${field.name}: ${laneType(field.type, lanes)}`).join(", ")} }
    fn start_${name}() -> ${name} { return ${name}(${fields.map(({ type, start }) => `${laneType(type, lanes)}(${start})`).join(", ")}); }
    fn join_${name}(a: ${name}, b: ${name}) -> ${name} {
      ${joined.before ?? ""}
      return ${name}(${joined.fields.join(", ")});
    }
  `;
};

/**
 * Returns WGSL of the types and functions of a fold: `State` of `lanes` elements, `Result`, which is the state of one
 * element if `narrows` and equal to `State` if not, and `fn narrow(s: State) -> Result`.
 */
export const foldText = (fold: Fold, lanes: Lanes, narrows: boolean): string => {
  const state = structText(fold, "State", lanes);
  if (!narrows || lanes === 1)
    return wgsl`
      ${state}
      alias Result = State;
      fn narrow(s: State) -> State { return s; }
    `;
  const part = (lane: string): string => `Result(${fold.fields.map(({ name }) => `s.${name}.${lane}`).join(", ")})`;
  return wgsl`
    ${state}
    ${structText(fold, "Result", 1)}
    fn narrow(s: State) -> Result {
      return join_Result(join_Result(${part("x")}, ${part("y")}), join_Result(${part("z")}, ${part("w")}));
    }
  `;
};

/**
 * Returns WGSL of `fn tree(lane: u32, rank: u32, own: Result) -> Result`, which combines the states of `count`
 * invocations that are `stride` apart. The invocation of rank 0 receives the result. The order of combination depends
 * only on `count`. Must be called by the complete workgroup.
 */
export const treeText = (
  fold: Fold,
  joinName: "State" | "Result",
  lanes: Lanes,
  count: number,
  stride: number,
): string => {
  if (count === 1) return "fn tree(lane: u32, rank: u32, own: Result) -> Result { return own; }";
  const put = (value: string): string =>
    fold.fields.map(({ name }) => `tree_${name}[lane] = ${value}.${name};`).join(" ");
  let half = 1;
  while (2 * half < count) half *= 2;
  const steps: string[] = [];
  for (let step = half; step >= 1; step /= 2) {
    const other = `lane + ${step * stride}u`;
    // The result of the last step is in registers, so it is not read from memory.
    steps.push(wgsl`
      workgroupBarrier();
      if (rank < ${step}u && rank + ${step}u < ${count}u) {
        s = join_${joinName}(s, Result(${fold.fields.map(({ name }) => `tree_${name}[${other}]`).join(", ")}));
        ${step > 1 ? put("s") : ""}
      }
    `);
  }
  return wgsl`
    ${fold.fields.map(({ name, type }) => `var<workgroup> tree_${name}: array<${laneType(type, lanes)}, ${workgroupSize}>;`)}
    fn tree(lane: u32, rank: u32, own: Result) -> Result {
      var s = own;
      ${put("own")}
      ${steps}
      return s;
    }
  `;
};

/** Memory blocks for states between passes, one block per field. */
export type StateBlocks = readonly BindingSource[];

const stateBindings = (
  fold: Fold,
  blocks: StateBlocks,
  lanes: Lanes,
  prefix: string,
  access: "read" | "write",
): Binding[] =>
  fold.fields.map(({ name, type }, i) => ({
    name: `${prefix}_${name}`,
    type: `array<${laneType(type, lanes)}>`,
    source: blocks[i]!,
    access,
  }));

/** Returns a fold source that reads the states that an earlier pass has written. */
export const stateSource = (fold: Fold, blocks: StateBlocks): Source => ({
  bindings: (lanes) => stateBindings(fold, blocks, lanes, "from", "read"),
  code: () =>
    `fn lift(at: u32, place: u32, column: u32) -> State { return State(${fold.fields.map(({ name }) => `from_${name}[at]`).join(", ")}); }`,
});

/** Returns a fold sink that writes states for a later pass. */
export const stateSink = (fold: Fold, blocks: StateBlocks): Sink => ({
  bindings: (lanes) => stateBindings(fold, blocks, lanes, "to", "write"),
  code: () =>
    `fn store(at: u32, s: Result) { ${fold.fields.map(({ name }) => `to_${name}[at] = s.${name};`).join(" ")} }`,
});
