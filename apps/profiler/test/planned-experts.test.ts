import { expect, test } from "vitest";
import { tinyJob } from "./tiny-job.ts";

const opened = tinyJob([16]);

test("a step with a planned dispatch equals that of a run, and uses the flat dispatch without a plan", async () => {
  const gptWith = (way: string) =>
    opened(
      "data={kind: moby-dick, window: 16, trainSamples: 400, testSamples: 30}",
      `model={kind: gpt, layers: 2, heads: 2, width: 16, experts: {count: 4, every: 1, ${way}}}`,
      "mesh={expert: 4}",
      "compression={kind: identity}",
      "evaluation.batch=8",
    );
  const auto = await gptWith("dispatch: auto, chunks: auto");
  const opsOf = ({ graph }: ReturnType<typeof auto.step>): readonly string[] => graph.nodes.map(({ op }) => op);
  const planned = opsOf(auto.step({ experts: { dispatch: "duplicate-free", chunks: 2 } }));
  expect(planned).toEqual(opsOf((await gptWith("dispatch: duplicate-free, chunks: 2")).step()));
  expect(opsOf(auto.step())).toEqual(opsOf((await gptWith("dispatch: ragged")).step()));
  expect(planned).not.toEqual(opsOf(auto.step()));
});
