import type { LinkSample } from "@skein/collectives";
import { ArgumentError } from "@skein/tensor-core";
import { type CollectiveModel, lineAt } from "./collective-model.ts";
import { median } from "./median.ts";

/**
 * Fit by how much equal collectives that begin together slow one another down: from T = a + c · b · M of each, c = (T −
 * a) / (b · M), the median over the sizes whose transfer takes no less than their start-up, or over those of the
 * largest size where there is none such.
 *
 * @param model of one collective alone.
 * @param together what several of `bytes` each took from their common begin to the end of the last.
 * @returns c, 1 or more, as an entry of a `Slowdown`; 1 where the model says that transfers take no time.
 * @throws ArgumentError without samples, or for times and sizes that are none.
 *
 * Source: the model of Shi, Chu and Li, INFOCOM 2021 (ASC-WFBP), who give 1.5 for two on their network.
 */
export const fitSlowdown = (model: CollectiveModel, together: readonly LinkSample[]): number => {
  const wrong = together.find(
    ({ bytes, seconds }) => !(bytes >= 0 && seconds > 0 && Number.isFinite(bytes) && Number.isFinite(seconds)),
  );
  if (together.length === 0 || wrong !== undefined)
    throw new ArgumentError(
      wrong === undefined
        ? "fitSlowdown: no samples were given; measure several collectives at once"
        : `fitSlowdown: ${wrong.bytes} bytes in ${wrong.seconds} s were given; both must be finite, and the time above 0; measure them anew`,
    );
  const terms = together.map(({ bytes, seconds }) => {
    const { startupSeconds, secondsPerByte } = lineAt(model, bytes);
    return { bytes, startup: startupSeconds, transfer: secondsPerByte * bytes, seconds };
  });
  const largest = Math.max(...terms.map(({ bytes }) => bytes));
  const telling = terms.filter(({ startup, transfer }) => transfer > 0 && transfer >= startup);
  const used = telling.length > 0 ? telling : terms.filter(({ bytes, transfer }) => transfer > 0 && bytes === largest);
  return used.length === 0
    ? 1
    : Math.max(1, median(used.map(({ startup, transfer, seconds }) => (seconds - startup) / transfer)));
};
