// Shapes: D token width, R = E·C slots of all experts.
import { customGradient, stopGradient, type Tensor, vjp } from "@skein/tensor-core";
import type { DispatchSizes, ExpertRows, ExpertWork } from "./token-dispatcher.ts";

/** Operations of a dispatcher that can rearrange received chunks locally into a different number of chunks. */
export interface RechunkableDispatch {
  readonly sendToExperts: (x_TD: Tensor, sizes: DispatchSizes) => readonly ExpertRows[];
  /** Rearranges received rows from the chunks of `sizes` into another number of chunks, without communication. */
  readonly rechunk: (rows: readonly Tensor[], sizes: DispatchSizes, numChunks: number) => readonly ExpertRows[];
  /** Sends rows back to the ranks of their tokens: f32 [R, D], in the same order for any number of chunks. */
  readonly returnRows: (outputs: readonly Tensor[], sizes: DispatchSizes) => Tensor;
}

/**
 * Sends tokens to their experts, applies the experts, and sends the results back. Uses `sizes.numChunks` chunks in the
 * forward pass and `work.backwardChunks` chunks in the backward pass. The backward pass is traced as if the forward
 * pass had used the backward chunks. The backward pass reuses the received rows of the forward pass, rearranged.
 *
 * Cost: no additional bytes compared with equal chunks. Activations inside experts belong to forward chunks. So they
 * are not saved, and the backward pass recomputes them, like a `checkpoint` around the experts.
 * @returns the result of `returnRows`.
 */
export const runWithBackwardChunks = <Params>(
  x_TD: Tensor,
  sizes: DispatchSizes,
  { params, apply, backwardChunks }: ExpertWork<Params>,
  { sendToExperts, rechunk, returnRows }: RechunkableDispatch,
): Tensor => {
  const backward = { ...sizes, numChunks: backwardChunks };
  const rowsOf = (chunks: readonly ExpertRows[]): readonly Tensor[] => chunks.map(({ rows_SD }) => rows_SD);
  /**
   * Returns the rows received in the forward pass, rearranged into the backward chunks. In the backward pass, the rows'
   * cotangents are sent back in these chunks.
   */
  const reuseReceived = (x: Tensor, rows: readonly Tensor[]): readonly ExpertRows[] => {
    const rechunked = rechunk(rows.map(stopGradient), sizes, backwardChunks);
    const carried = customGradient(
      (_x: Tensor) => rowsOf(rechunked),
      ({ args: [own], cotangents }) => [
        vjp((tokens: Tensor) => rowsOf(sendToExperts(tokens, backward)), own).pullback(cotangents),
      ],
    )(x);
    return rechunked.map(({ counts_e }, i) => ({ rows_SD: carried[i]!, counts_e }));
  };
  const { returned_RD } = customGradient(
    (own: Params, x: Tensor) => {
      const chunks = sendToExperts(x, sizes);
      const outputs = chunks.map((rows) => apply(own, rows));
      return { returned_RD: returnRows(outputs, sizes), rows: rowsOf(chunks) };
    },
    ({ args, value: { rows }, cotangents }) =>
      vjp(
        ([own, x]: readonly [Params, Tensor]) => {
          const outputs = reuseReceived(x, rows).map((chunk) => apply(own, chunk));
          return returnRows(outputs, backward);
        },
        args as readonly [Params, Tensor],
      ).pullback(cotangents.returned_RD) as never,
  )(params, x_TD);
  return returned_RD;
};
