import { expertAxis } from "@skein/job/node";
import { maxMovesPerPair, moveExperts } from "@skein/moe-parallel/placement";
import { type Backend, type Communicators, type DeviceArray, jit, NdArray, type Tensor } from "@skein/tensor-core";
import type { DeviceState, Parts } from "../step/train-state.ts";
import { type ExpertLayer, leavesAt, withLeaves } from "./expert-layers.ts";

type Move = (rows: readonly DeviceArray[], before: DeviceArray, after: NdArray) => Promise<readonly DeviceArray[]>;

/**
 * Moves the experts in a state to other slots, possibly on other ranks. Uses one compiled function per message size.
 */
export class ExpertMover {
  private readonly compiled = new Map<number, Move & { release(): void }>();
  private readonly input: Pick<MoverInput, "parts" | "backend" | "communicators">;

  constructor(input: MoverInput) {
    this.input = input;
  }

  /**
   * Moves the experts of a layer, and the optimizer's state for these experts, to their new slots. Consumes the state,
   * which must have no pending operations. Must be called on all ranks with the same slots.
   *
   * @param before Slot index of each expert before the move.
   * @param after Slot index of each expert after the move.
   */
  async move(
    state: DeviceState,
    layer: ExpertLayer,
    { before, after }: { readonly before: readonly number[]; readonly after: readonly number[] },
  ): Promise<DeviceState> {
    const { backend, parts } = this.input;
    const room = Math.max(1, maxMovesPerPair(before, after, parts.mesh[expertAxis] ?? 1));
    const [places] = leavesAt(state, [layer.places]);
    const next = NdArray.from([...after], [after.length], "i32");
    const rows = await this.compiledFor(room)(leavesAt(state, layer.rows), places!, next);
    backend.free(places!);
    return withLeaves(
      state,
      new Map([...layer.rows.map((path, i) => [path, rows[i]!] as const), [layer.places, backend.upload(next)]]),
    );
  }

  private compiledFor(room: number): Move {
    const known = this.compiled.get(room);
    if (known !== undefined) return known;
    const { backend, parts, communicators } = this.input;
    const made = jit(
      (rows: readonly Tensor[], before_E: Tensor, after_E: Tensor) =>
        moveExperts(rows, { before_E, after_E, axis: expertAxis, room }),
      backend,
      { donate: [0], mesh: parts.mesh, communicators, name: "move experts" },
    ) as unknown as Move & { release(): void };
    this.compiled.set(room, made);
    return made;
  }

  release(): void {
    for (const made of this.compiled.values()) made.release();
    this.compiled.clear();
  }
}

/** Inputs of an `ExpertMover`. */
interface MoverInput {
  readonly parts: Parts;
  readonly backend: Backend;
  readonly communicators: Communicators;
}
