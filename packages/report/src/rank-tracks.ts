import { type RankSpans, type Span, type Track, tracks } from "@skein/tensor-core";
import type { TimelineTrack, TimelineSpan } from "./charts/timeline-chart.ts";
import { kindOfPhase } from "./phases.ts";
import { bytesText } from "./quantities.ts";
import type { Kind } from "./tokens.ts";

/** Tracks that are shown even if they are empty, so that a user can see that a rank did not wait. */
const requiredTracks: readonly Track[] = ["compute", "collectives", "waiting"];

/** Returns the kind of mark for a span. The kind of a kernel depends on its phase. */
const kindOfSpan = ({ track, args }: Span): Kind => {
  if (track === "collectives") return "communication";
  if (track === "waiting") return "exposed";
  return track === "compute" && args?.phase !== undefined ? kindOfPhase[args.phase] : "other";
};

const labelOf = ({ name, args = {} }: Span): string =>
  [name, args.shape, args.algorithm, args.bytes === undefined ? undefined : bytesText(args.bytes)]
    .filter((part) => part !== undefined)
    .join(", ");

/**
 * Builds the tracks of a timeline. Each rank has tracks for kernels, collectives and waiting, and a track for each
 * other kind of span that occurs. Each track also contains the predicted spans of the same rank.
 *
 * @param withSteps Whether to show the track of steps. A step contains all other spans, so a timeline of one step does
 * not need this track. Default: false.
 */
export const rankTracks = (
  measured: readonly RankSpans[],
  predicted: readonly RankSpans[] | undefined,
  withSteps = false,
): TimelineTrack[] => {
  const spansOf = (spans: readonly Span[], track: Track): TimelineSpan[] =>
    spans
      .filter((span) => span.track === track)
      .map((span) => ({
        label: labelOf(span),
        kind: kindOfSpan(span),
        startSeconds: span.startSeconds,
        endSeconds: span.endSeconds,
      }));
  return measured.flatMap(({ rank, process, spans }) => {
    const group = process === undefined ? `rank ${rank}` : `rank ${rank}, ${process}`;
    const prediction = predicted?.find((one) => one.rank === rank)?.spans;
    return tracks
      .filter(
        (track) =>
          (withSteps || track !== "steps") &&
          (requiredTracks.includes(track) || spans.some((span) => span.track === track)),
      )
      .map((track): TimelineTrack => {
        const hasPrediction =
          prediction !== undefined &&
          (requiredTracks.includes(track) || prediction.some((span) => span.track === track));
        return {
          group,
          name: track,
          spans: spansOf(spans, track),
          predicted: hasPrediction ? spansOf(prediction, track) : undefined,
        };
      });
  });
};
