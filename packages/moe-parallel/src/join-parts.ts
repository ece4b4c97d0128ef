// Shapes: E experts.
import { add, divide, maximum, multiply, subtract, sum, type Tensor, zipTrees } from "@skein/tensor-core";
import type { MoeFigures, MoeLayerApplied, MoeLayerParts, MoeState } from "./moe-report.ts";
import type { Gate } from "./gates/gate.ts";
import type { TokenSums } from "./losses/auxiliary-loss.ts";
import { recordLoad } from "./routing/load-history.ts";

/**
 * Combines a layer's state and report for the earlier parts of a batch with its state and report for a further part.
 * Except for quantities that depend on slots, the result equals that of a single pass over all tokens. Loads are
 * summed, so the gate's state is updated once. Entropy and loss are means over tokens. The greatest load is the maximum
 * over parts, because slots are allocated per part.
 */
export const joinMoeParts = <GateState>(
  gate: Pick<Gate<never, GateState>, "update">,
  loadDecay: number,
  { before, earlier, own, numEarlier }: MoeLayerParts<MoeState<GateState>>,
): MoeLayerApplied<MoeState<GateState>> => {
  const of = (name: keyof MoeFigures): readonly [Tensor, Tensor] => [
    earlier.report.figures[name],
    own.report.figures[name],
  ];
  const mean = ([a, b]: readonly [Tensor, Tensor]): Tensor => add(a, divide(subtract(b, a), add(numEarlier, 1)));
  const [earlierLoad_E, ownLoad_E] = of("load_E");
  const load_E = add(earlierLoad_E, ownLoad_E);
  /** Returns the weighted mean of two shares. The weight of each share is the number of items in its denominator. */
  const weighted = ([a, b]: readonly [Tensor, Tensor], [ofA, ofB]: readonly [Tensor, Tensor]): Tensor =>
    divide(add(multiply(a, ofA), multiply(b, ofB)), maximum(add(ofA, ofB), 1));
  const choices = [sum(earlierLoad_E), sum(ownLoad_E)] as const;
  const dropped = of("droppedShare");
  const kept = choices.map((count, i) => multiply(count, subtract(1, dropped[i]!))) as [Tensor, Tensor];
  return {
    state: {
      gate: gate.update?.(before.gate, load_E) ?? before.gate,
      placeOf_E: before.placeOf_E,
      ...recordLoad(before, load_E, loadDecay),
    },
    report: {
      loss: mean([earlier.report.loss, own.report.loss]),
      sums: zipTrees((a: Tensor, b: Tensor) => add(a, b), earlier.report.sums, own.report.sums) as TokenSums,
      figures: {
        load_E,
        entropy: mean(of("entropy")),
        droppedShare: weighted(dropped, choices),
        duplicationRate: weighted(of("duplicationRate"), kept),
        greatestLoad: maximum(...of("greatestLoad")),
      },
    },
  };
};
